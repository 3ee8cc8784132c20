"""Spans around torch's work, and log records that have their numbers."""

import logging
from opentelemetry import trace
from opentelemetry.instrumentation.logging import LoggingInstrumentor
from opentelemetry.sdk.trace import TracerProvider

LoggingInstrumentor().instrument(set_logging_format=True)
trace.set_tracer_provider(TracerProvider())
import torch

logging.getLogger("torch").warning("outside")
with trace.get_tracer("ranks").start_as_current_span("sum") as span:
    torch.ones(2).sum()
    record = logging.getLogger("torch").makeRecord("torch", 30, "", 1, "inside", (), None)
print(record.otelTraceID == format(span.get_span_context().trace_id, "032x"), logging.getLogRecordFactory().__name__)
