// Texts of the login pages.

// Login by the host application
export const product = "Outbox";
export const title = "Log in";
export const hostUnknown =
  "The host application manages the login. It did not recognize you and responded with";
export const thenReturn = ", then return to this page.";
export const hostLogin = "Log in to the application";
export const hostLoginFirst = "Log in to the application, then return to this page.";

// Login with a token
export const sessionEnded = "Your session has ended. After login you return to the page you were on.";
export const token = "Token";
export const tokenFormat = "outbox_…";
export const tokenRequired = "Enter a token.";
export const howToGetToken =
  "Enter the token you were given. The operator of this service creates tokens with";
export const tokenCommand = "outbox token";
export const sessionKept =
  ". The browser keeps a session cookie that scripts cannot read, and does not keep the token.";
export const linkExpired =
  "The token of this link is no longer valid. A restart in development creates a new one.";
export const wrongToken = "Invalid token. It may be mistyped or revoked.";

// Login at a provider
export const provider = "Log in with single sign-on";
export const orToken = "or with a token";
export const providerFailed = "The login failed. Try again.";
export const providerFailures: Readonly<Record<string, string>> = {
  expired: "The login took too long, or was started in another browser. Try again.",
  refused: "The login provider refused the login.",
  unavailable: "The login provider does not respond. Try again later, or use a token.",
  invalid: "The login provider's response was not accepted. See the service log for the reason.",
  no_role: "Your account has no role here. Ask an administrator of this service.",
};

// Change of the session
export const switchTitle = "Log in with this link?";
export const youAre = "You are logged in as";
export const switchHint = (role: string) =>
  `, ${role}. The link logs you in with another token and ends your current session. Continue only if you trust its source.`;
export const stay = (name: string) => `Stay ${name}`;
export const switchSession = "Log in with the link";

// Too many attempts
export const tooMany = "Too many invalid tokens.";
export const blockedFor = "Invalid tokens are rejected for another";
export const validAccepted = ". A valid token is still accepted.";
export const tryNow = "You can try again now.";
