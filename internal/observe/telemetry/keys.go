package telemetry

// Attribute keys that several packages use, in logs and in spans, so that one search
// finds all entries about a thing.
const (
	KeyTraceID  = "trace_id"
	KeySpanID   = "span_id"
	KeyError    = "error"
	KeyTool     = "tool"     // in the form space.name
	KeyUpstream = "upstream" // its namespace
	KeyScript   = "script"   // its hash
	KeyJob      = "job"      // its id
	KeySession  = "session"  // shortened: the whole handle is a secret
	KeyTook     = "took"     // a duration

	KeyPrincipal = "luanette.principal" // whose a span is
	KeyOrg       = "luanette.org"
	KeyPerson    = "luanette.person" // for whom a principal acts in a chat
)
