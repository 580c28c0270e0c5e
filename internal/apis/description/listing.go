package description

import (
	"slices"

	"github.com/luanette/luanette/internal/apis/api"
)

// Listing is a listing with the problem of the newest description in front of what is left
// out.
func Listing(listing api.Listing, problem string) api.Listing {
	if problem != "" {
		listing.LeftOut = slices.Insert(slices.Clone(listing.LeftOut), 0, problem)
	}
	return listing
}
