// Links to other systems.

export const external = "External links";
export const logs = "Logs";
export const trace = "Trace";
export const traceId = "Trace ID";
export const copyTraceId = "Copy trace ID";
