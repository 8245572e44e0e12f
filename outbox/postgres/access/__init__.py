"""Who may use the admin, and who did: tables that all processes share."""
