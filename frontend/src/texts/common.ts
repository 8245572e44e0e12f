// Texts that several features use.

export const cancel = "Cancel";
export const close = "Close";
export const tryAgain = "Try again";
/** Shown where the record names no actor. */
export const unknownActor = "an unknown user";
