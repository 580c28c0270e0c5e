package packages

import (
	"context"
	"encoding/json"
	"os/exec"

	"github.com/luanette/luanette/internal/base/fault"
)

// Signatures are what a registry vouches for of an installation. Packages are named as
// NAME@VERSION.
type Signatures struct {
	Attested []string `json:"attested,omitempty"` // those with provenance: it is proven from which source they were built
	Missing  []string `json:"missing,omitempty"`  // those without a signature; all others have a valid one
	Invalid  []string `json:"invalid,omitempty"`  // those that somebody may have changed
}

// Verify has npm check the signatures and the provenance of all packages of an installation. An
// error says that they could not be checked, as the registry has none or is not reached.
func (s *Store) Verify(ctx context.Context, r Request, record Record) (Signatures, error) {
	npm, err := findIn(r.Start.Path, "npm")
	if err != nil {
		return Signatures{}, missing("npm")
	}
	cmd := exec.CommandContext(ctx, npm, "audit", "signatures", "--json", "--include-attestations", "--fetch-retries=0", "--no-update-notifier")
	cmd.Env, cmd.Dir = r.environment(), s.path(record.Folder)
	text, err := cmd.Output() // it fails, too, if a signature is missing or invalid
	var found struct {
		Invalid, Missing, Verified []struct{ Name, Version string }
		Error                      *struct{ Summary string }
	}
	if bad := json.Unmarshal(text, &found); bad != nil {
		if err == nil {
			err = bad
		}
		return Signatures{}, fault.Wrap(fault.Unavailable, err, "check the signatures of %s", record.Name)
	}
	if found.Error != nil {
		return Signatures{}, fault.New(fault.Unavailable, "check the signatures of %s: %s", record.Name, found.Error.Summary)
	}
	names := func(list []struct{ Name, Version string }) (all []string) {
		for _, one := range list {
			all = append(all, one.Name+"@"+one.Version)
		}
		return all
	}
	return Signatures{
		Attested: names(found.Verified), Missing: names(found.Missing), Invalid: names(found.Invalid),
	}, nil
}
