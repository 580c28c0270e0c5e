package wire

import "slices"

// Era tells the two ways of speaking MCP apart.
type Era uint8

// The eras. Legacy begins with initialize and keeps a session; Modern has
// neither, every request says all of itself.
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

// The revisions of the protocol we speak.
const (
	Revision2024 = "2024-11-05"
	Revision2503 = "2025-03-26"
	Revision2506 = "2025-06-18"
	Revision2511 = "2025-11-25"
	Revision2607 = "2026-07-28"

	NewestLegacy = Revision2511
	NewestModern = Revision2607
)

// Revisions lists what we speak, newest first.
func Revisions() []string {
	return []string{Revision2607, Revision2511, Revision2506, Revision2503, Revision2024}
}

// RevisionsOf lists what we speak of one era, newest first.
func RevisionsOf(era Era) []string {
	return slices.DeleteFunc(Revisions(), func(r string) bool { return EraOf(r) != era })
}

// EraOf is the era a revision belongs to; Unknown for one we do not speak.
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
// one asked for where we speak it as Legacy, else our newest of that era.
func Negotiate(requested string) string {
	if EraOf(requested) == Legacy {
		return requested
	}
	return NewestLegacy
}
