package telemetry

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// BenchmarkSpansOfACall measures the two spans of a relayed call, with as many
// attributes as they have, stored in memory (docs/decisions/015-spans.md).
func BenchmarkSpansOfACall(b *testing.B) {
	tracer := memoryProvider{recent: newTraces(200)}.Tracer("x")
	request := []attribute.KeyValue{
		attribute.String("mcp.method.name", "tools/call"), attribute.String("gen_ai.tool.name", "fs__read"), attribute.String("mcp.protocol.version", "2025-11-25"),
		attribute.String("network.transport", "tcp"), attribute.String("mcp.session.id", "3f1c9a52"), attribute.String("jsonrpc.request.id", "17"),
	}
	call := []attribute.KeyValue{
		attribute.String("mcp.method.name", "tools/call"), attribute.String("gen_ai.tool.name", "read"), attribute.String("luanette.upstream", "fs"),
		attribute.String("network.transport", "pipe"), attribute.String("mcp.protocol.version", "2025-11-25"),
	}
	b.ReportAllocs()
	for b.Loop() {
		ctx, outer := tracer.Start(b.Context(), "tools/call fs__read", trace.WithSpanKind(trace.SpanKindServer))
		outer.SetAttributes(request...)
		_, inner := tracer.Start(ctx, "tools/call read", trace.WithSpanKind(trace.SpanKindClient))
		inner.SetAttributes(call...)
		inner.SetAttributes(attribute.Int("luanette.result.size", 512))
		inner.End()
		outer.SetAttributes(attribute.Int("luanette.result.size", 512))
		outer.End()
	}
}
