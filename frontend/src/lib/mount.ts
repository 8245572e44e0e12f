// URLs of the dashboard and the API, from the base element that the server writes into the page.

/** `https://host/a/b/outbox/ui/` */
export const pages = new URL(".", document.baseURI);

/** `https://host/a/b/outbox/` */
export const api = new URL("../", pages);

/** `/a/b/outbox/ui`, the prefix of all page paths. */
export const base = pages.pathname.replace(/\/$/, "");

/** Name of the outbox, if this address serves several: from an element that the server writes into the page. */
export const outbox = document.querySelector<HTMLMetaElement>('meta[name="outbox-name"]')?.content;
