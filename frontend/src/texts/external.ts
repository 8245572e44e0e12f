// Links to other systems.

export const external = "Elsewhere";
export const logs = "Logs";
export const trace = "Trace";
