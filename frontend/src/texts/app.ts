// Texts around every page: navigation, shortcuts, errors.

export const product = "Outbox";
export const notFound = "Page not found";
export const noSuchPage = "This page does not exist.";
export const noSuchPageHint = "Check the address. It may belong to another version.";
export const pageFailed = "Page error";
export const pageFailedTitle = "The dashboard failed to show this page. Your messages are not affected.";
export const pageFailedHint =
  "Reload the page, for example after an update of the service. If it fails again, look at the browser console.";
export const reload = "Reload";
export const pauseLive = "Pause live updates";
export const resumeLive = "Resume live updates";
export const readAgo = (age: string) => `Last updated ${age} ago`;
export const sinceUpdate = "since the last update";
export const everywhere = "Everywhere";
export const listShortcuts = "Show keyboard shortcuts";
export const goTo = (page: string) => `Go to ${page}`;
export const skip = "Skip to content";
export const closeMenu = "Close the menu";
export const openMenu = "Open the menu";
export const pages = "Pages";
export const shortcuts = "Shortcuts";
export const open = "open";
export const logOutFailed = (why: string) => `Log out failed: ${why}`;
export const readOnlySuffix = ", read-only";
export const logOut = "Log out";
export const shortcutsTitle = "Keyboard shortcuts";
export const overview = "Overview";
export const messages = "Messages";
export const deadLetters = "Dead letters";
export const operations = "Operations";
export const chains = "Chains";
export const components = "Components";
export const topology = "Topology";
export const audit = "Audit log";
export const settings = "Settings";
export const menu = "Menu";
export const shortcutsHint = "Available on this page while you are not typing.";
