package wire

// Era is one of the two forms of MCP.
type Era uint8

// The eras. Legacy begins with initialize and has sessions. Modern has neither: every
// request is complete in itself.
const (
	Unknown Era = iota
	Legacy
	Modern
)

func (e Era) String() string {
	switch e {
	case Legacy:
		return "legacy"
	case Modern:
		return "modern"
	}
	return "unknown"
}

// The supported revisions of the protocol.
const (
	Revision2024 = "2024-11-05"
	Revision2503 = "2025-03-26"
	Revision2506 = "2025-06-18"
	Revision2511 = "2025-11-25"
	Revision2607 = "2026-07-28"

	NewestLegacy = Revision2511
	NewestModern = Revision2607
)

// Revisions lists the supported revisions, newest first.
func Revisions() []string {
	return []string{Revision2607, Revision2511, Revision2506, Revision2503, Revision2024}
}

// EraOf is the era a revision belongs to; Unknown for one that is not supported.
func EraOf(revision string) Era {
	switch revision {
	case Revision2607:
		return Modern
	case Revision2511, Revision2506, Revision2503, Revision2024:
		return Legacy
	}
	return Unknown
}

// Negotiate is the revision a server answers an initialize request with: the
// requested one if it is of the era Legacy, otherwise the newest of that era.
func Negotiate(requested string) string {
	if EraOf(requested) == Legacy {
		return requested
	}
	return NewestLegacy
}
