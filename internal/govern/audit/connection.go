package audit

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/egress"
)

// Connect is the action of an entry about a connection of a sandboxed program.
const Connect = "connect"

// RecordConnection records a connection of a sandboxed program, refused ones too. Its
// size is what was sent and received. A nil log records nothing.
func (l *Log) RecordConnection(c egress.Connection) {
	if l == nil {
		return
	}
	d := Draft{
		At: c.Started, Who: "upstream:" + c.Server, Name: c.Server, Client: c.Address, Action: Connect, Subject: c.Destination(),
		Decision: "allow", Rule: c.Rule, Size: c.Sent + c.Received, Took: (time.Duration(c.TookMS) * time.Millisecond).Microseconds(),
	}
	switch c.Outcome {
	case egress.Refused:
		d.Decision, d.Rule, d.Error = "deny", "network", string(fault.Denied)
	case egress.Failed:
		d.Error = string(fault.Unavailable)
	}
	l.Record(context.Background(), d) // it belongs to no request; a log that is closed waits for nothing
}
