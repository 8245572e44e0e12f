# The service. The default command is `uvicorn app:main`; others are `outbox relay`, `outbox worker …`, `python -m app migrate`.
ARG PYTHON=3.13

# The dashboard, with the Node that requirements/node.lock pins.
FROM python:${PYTHON}-slim AS dashboard
WORKDIR /build
COPY requirements/node.lock requirements/
COPY scripts scripts
COPY frontend frontend
RUN python scripts/dashboard.py

FROM python:${PYTHON}-slim AS build
WORKDIR /build
RUN python -m venv /venv && python -m venv /backend
COPY requirements/service.lock requirements/build.lock requirements/
RUN /venv/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements/service.lock \
    && /backend/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements/build.lock
COPY pyproject.toml README.md hatch_build.py ./
COPY scripts scripts
COPY outbox outbox
COPY --from=dashboard /build/outbox/admin/ui/static outbox/admin/ui/static
# Without build isolation, which would download an unpinned build backend.
RUN /backend/bin/pip wheel --no-cache-dir --no-build-isolation --no-index --no-deps --wheel-dir dist . \
    && /venv/bin/pip install --no-cache-dir --no-index --no-deps dist/*.whl

FROM python:${PYTHON}-slim
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    OUTBOX_HTTP_HOST=0.0.0.0 \
    OUTBOX_MONITORING_HOST=0.0.0.0
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin outbox
COPY --from=build /venv /venv
WORKDIR /service
COPY alembic.ini ./
COPY migrations migrations
COPY app app
COPY docker/healthy.py /usr/local/lib/healthy.py
USER 10001
EXPOSE 8000
# The port of the command's health endpoint.
ENV HEALTH_PORT=8000
HEALTHCHECK --interval=5s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "/usr/local/lib/healthy.py"]
# The server closes connections that stay open after its graceful timeout. The platform's stop timeout must be longer.
STOPSIGNAL SIGTERM
CMD ["uvicorn", "app:main", "--host", "0.0.0.0", "--port", "8000", "--timeout-graceful-shutdown", "30"]
