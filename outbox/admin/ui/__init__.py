"""The dashboard: serves the built files of `frontend/` to everyone; their data comes from the authenticated API."""

from outbox.admin.ui.routes import is_built, ui_routes

__all__ = ["is_built", "ui_routes"]
