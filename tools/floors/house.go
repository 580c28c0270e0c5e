package main

// House is the plan of docs/design/floors.md, top floor first.
func House() Plan {
	return Plan{
		Floors: []Floor{
			{Name: "door step", Rooms: []string{"cmd/luanette"}},
			{Name: "house", Rooms: []string{"internal/app"}},
			{Name: "doors", Rooms: []string{"internal/hub", "internal/chat", "internal/hud", "internal/bridge", "internal/files", "internal/admin", "internal/gate", "internal/login"}},
			{Name: "own tools", Rooms: []string{"internal/builtin"}},
			{Name: "rooms", Rooms: []string{
				"internal/node", "internal/visitor", "internal/errand", "internal/script", "internal/upstream", "internal/wanted", "internal/job", "internal/approval", "internal/artifact",
				"internal/agent", "internal/keyring", "internal/results", "internal/trust", "internal/policy", "internal/audit", "internal/arrange", "internal/catalog", "internal/hoot", "internal/oauth",
			}},
			{Name: "gear", Rooms: []string{
				"internal/bearer", "internal/strict", "internal/declare", "internal/shape", // of tools and of what they answer
				"internal/backup", "internal/js", "internal/module/*", "internal/durable", "internal/blobs", "internal/db", "internal/seal", "internal/zmtp", "internal/llm", "internal/oskeyring",
				"internal/smf", "internal/abc", "internal/audio", "internal/soundfont", "internal/synth", "internal/telemetry", "internal/toolset", "internal/wire", "internal/hoot01", "internal/backend",
			}},
			{Name: "host", Rooms: []string{"internal/host"}},
			{Name: "words", Rooms: []string{"internal/tool", "internal/event", "internal/event/phrase"}},
			{Name: "ground", Rooms: []string{
				"internal/cas", "internal/lane", "internal/tokens", "internal/backoff", "internal/clock", "internal/cancel", "internal/nearest", "internal/lazy", "internal/redact", "internal/inet", "internal/header", "internal/sock", "internal/wicket", "internal/secret", "internal/access", "internal/fair", "internal/answer", "internal/fault",
			}},
		},
		// Neighbours that may be imported on the same floor, and why.
		SitsOn: map[string][]string{
			"internal/abc":       {"internal/smf"},                                                                          // a tune becomes a MIDI file
			"internal/module/*":  {"internal/smf", "internal/abc", "internal/audio", "internal/soundfont", "internal/wire"}, // music, and a result cut out of its raw bytes
			"internal/toolset":   {"internal/wire"},                                                                         // schemas and arguments are cut and mended as bytes
			"internal/synth":     {"internal/smf", "internal/audio", "internal/soundfont"},                                  // a file of notes and a font of sounds become a sound
			"internal/durable":   {"internal/db"},                                                                           // both live in one database file
			"internal/blobs":     {"internal/db"},                                                                           // contents in the database
			"internal/declare":   {"internal/wire"},                                                                         // schemas and shapes are read without
			"internal/shape":     {"internal/wire"},                                                                         // losing the order of their members
			"internal/access":    {"internal/fault"},
			"internal/answer":    {"internal/fault"},
			"internal/inet":      {"internal/fault"},
			"internal/cas":       {"internal/fault"},
			"internal/lane":      {"internal/fault"},
			"internal/cancel":    {"internal/clock"}, // what ends soon is not waited for
			"internal/wicket":    {"internal/fault", "internal/cancel", "internal/header", "internal/sock"},
			"internal/llm":       {"internal/wire"},                    // server-sent events
			"internal/backend":   {"internal/zmtp", "internal/hoot01"}, // what is said, and over what
			"internal/telemetry": {"internal/secret", "internal/wire"}, // what of JSON goes onto spans
		},
		// The backend knows no MCP, whoever serves it; the front end knows no tool.
		Strangers: map[string][]string{
			"internal/bridge":   {"internal/wire", "internal/hub", "internal/upstream", "internal/catalog", "internal/builtin"},
			"internal/hoot":     {"internal/wire", "internal/hub", "internal/upstream", "internal/catalog"},
			"internal/hub":      {"internal/hoot", "internal/bridge", "internal/builtin", "internal/script", "internal/job"},
			"internal/upstream": {"internal/hoot", "internal/artifact", "internal/script", "internal/job"},
			"internal/backend":  {"internal/wire", "internal/hoot"},
		},
		// Show nothing of what they import: toolset uses wire to cut and mend JSON.
		Veils: []string{"internal/toolset"},
		// Stands beside the house: imports nothing of ours, usable by all.
		Beside: []string{"lua", "examples/scripts"},
		// Not part of the program: may look at everything.
		Workshop: []string{"tools", "test", "bench"},
		// Interfaces meant to be spoken everywhere; their implementations are not.
		Everywhere: []string{
			"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes",
			"go.opentelemetry.io/otel/trace", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/propagation",
			"go.opentelemetry.io/otel/trace/noop", "go.opentelemetry.io/otel/metric/noop",
		},
	}
}
