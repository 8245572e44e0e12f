// Where the dashboard and the API are mounted: the page's base address, which the server wrote into it.

/** `https://host/a/b/outbox/ui/` */
export const pages = new URL(".", document.baseURI);

/** `https://host/a/b/outbox/` */
export const api = new URL("../", pages);

/** `/a/b/outbox/ui`, what precedes every address of a page. */
export const base = pages.pathname.replace(/\/$/, "");
