"""The dashboard: serves the built files of `frontend/` to everyone; their data comes from the authenticated API."""

from outbox.admin.ui.files import BuiltFiles
from outbox.admin.ui.routes import ui_routes

__all__ = ["BuiltFiles", "ui_routes"]
