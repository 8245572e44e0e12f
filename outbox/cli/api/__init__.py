"""What commands ask the admin: a running service over HTTP, or the same routes in this process on the database itself."""
