package telemetry

// Attribute keys that more than one place uses, in logs and in spans, so that
// one search finds all that was said about a thing.
const (
	KeyTraceID  = "trace_id"
	KeySpanID   = "span_id"
	KeyError    = "error"
	KeyTool     = "tool"     // as people write it: space.name
	KeyUpstream = "upstream" // its namespace
	KeyScript   = "script"   // its hash
	KeyJob      = "job"      // its id
	KeySession  = "session"  // never the whole handle: it is a secret
	KeyTook     = "took"     // a duration
)
