"""The dashboard: the built files of `frontend/`, served to everybody; what they show comes from the guarded API."""

from outbox.admin.ui.files import BuiltFiles
from outbox.admin.ui.routes import ui_routes

__all__ = ["BuiltFiles", "ui_routes"]
