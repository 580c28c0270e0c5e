package principal

import (
	"regexp"

	"github.com/luanette/luanette/internal/base/fault"
)

var orgName = regexp.MustCompile(`^[A-Za-z0-9](-?[A-Za-z0-9])*$`)

// CheckOrg refuses names of organisations that cannot be part of the name of a namespace.
func CheckOrg(name string) error {
	if len(name) > 32 || !orgName.MatchString(name) {
		return fault.New(fault.InvalidParams, "%q cannot be the name of an organisation", name).
			WithHint("use up to 32 letters, digits and single hyphens")
	}
	return nil
}
