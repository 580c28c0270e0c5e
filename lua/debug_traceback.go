package lua

import (
	"fmt"
	"strings"
)

// Long tracebacks show their first and last levels.
const (
	tracebackFirst = 10
	tracebackLast  = 11
)

// Traceback describes the calls of a thread from a level on; level 0 is the
// running function. Msg, if not empty, comes first.
func (s *State) Traceback(t *Thread, msg string, level int) string {
	var b strings.Builder
	if msg != "" {
		b.WriteString(msg)
		b.WriteByte('\n')
	}
	b.WriteString("stack traceback:")
	n := len(t.frames)
	for l := level; l < n; l++ {
		if n-level > tracebackFirst+tracebackLast && l == level+tracebackFirst {
			skip := n - level - tracebackFirst - tracebackLast
			fmt.Fprintf(&b, "\n\t...\t(skipping %d levels)", skip)
			l += skip - 1
			continue
		}
		s.writeLevel(&b, t, n-1-l)
	}
	if t == s.main && n > 0 && t.frames[0].flags&frameFresh != 0 && level < n {
		b.WriteString("\n\t[C]: in ?")
	}
	return b.String()
}

// stoppedAt is the line of the instruction before pc, which runs. A loop that a
// budget stopped at its first instruction has none before it that has a line.
func stoppedAt(p *Proto, pc int) int {
	if line := p.lineAt(pc - 1); line > 0 {
		return line
	}
	return p.lineAt(pc)
}

func (s *State) writeLevel(b *strings.Builder, t *Thread, i int) {
	f := &t.frames[i]
	fn := t.function(f)
	b.WriteString("\n\t")
	if fn.proto == nil {
		b.WriteString("[C]: in ")
	} else {
		b.WriteString(chunkID(fn.proto.source))
		if line := stoppedAt(fn.proto, int(f.pc)); line > 0 {
			fmt.Fprintf(b, ":%d", line)
		}
		b.WriteString(": in ")
	}
	name, kind := s.frameName(t, i)
	switch global := s.globalName(fn); {
	case global != "":
		fmt.Fprintf(b, "function '%s'", global)
	case kind != "":
		fmt.Fprintf(b, "%s '%s'", kind, name)
	case fn.proto != nil && fn.proto.line == 0:
		b.WriteString("main chunk")
	case fn.proto != nil:
		fmt.Fprintf(b, "function <%s:%d>", chunkID(fn.proto.source), fn.proto.line)
	default:
		b.WriteString("?")
	}
	if f.flags&frameTail != 0 {
		b.WriteString("\n\t(...tail calls...)")
	}
}
