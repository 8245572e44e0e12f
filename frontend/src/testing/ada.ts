/** The answer of `GET /session` to an administrator who may do everything. */
export const ADA = {
  name: "ada",
  role: "admin",
  read_only: false,
  permissions: { repair: true, pause: true, purge: true, reveal: true, read_audit: true },
};
