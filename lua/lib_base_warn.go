package lua

import (
	"io"
	"strings"
)

// warnings is the state of the warning system: off until a script or the host
// turns it on.
type warnings struct {
	on      bool
	partial strings.Builder // of a warning in pieces
}

// warn writes a complete warning, or obeys a control message.
func (s *State) warn(msg string) {
	if strings.HasPrefix(msg, "@") {
		switch msg {
		case "@on":
			s.warnings.on = true
		case "@off":
			s.warnings.on = false
		}
		return
	}
	if s.warnings.on {
		_, _ = io.WriteString(s.stderr(), "Lua warning: "+msg+"\n")
	}
}
