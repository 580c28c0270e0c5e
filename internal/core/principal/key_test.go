package principal_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/core/principal"
)

// TestKeyOfAPerson checks that somebody with a key is the person, and that the limits of both
// count.
func TestKeyOfAPerson(t *testing.T) {
	t.Parallel()
	ada := principal.Principal{ID: "person:ada/acme", Name: "Ada", Org: "acme", Limits: principal.Limits{Rate: 9}}
	who := ada.ByKey("laptop")
	who.KeyLimits = principal.Limits{Budget: 5}
	if name, ok := who.OwnKey(); !ok || name != "laptop" || who.Owner() != ada.Owner() || who.Title() != "the key laptop of Ada" {
		t.Errorf("%+v is %s", who, who.Title())
	}
	if _, ok := ada.OwnKey(); ok {
		t.Error("the person is a key")
	}
	want := []principal.Limited{{ID: "person:ada/acme/key:laptop", Title: "the key laptop of Ada", Limits: who.KeyLimits}, {ID: ada.ID, Title: "Ada", Limits: ada.Limits}}
	if got := who.Limited(); !slices.Equal(got, want) {
		t.Errorf("limited: %+v", got)
	}
	if got := who.RuleNames(); !slices.Equal(got, []string{"Ada", "ada/acme/laptop"}) {
		t.Errorf("rules mean %q", got)
	}
	text, err := json.Marshal(who)
	if err != nil {
		t.Fatal(err)
	}
	var again principal.Principal
	if err := json.Unmarshal(text, &again); err != nil || again.ID != who.ID || again.Grant != who.Grant || again.KeyLimits != who.KeyLimits {
		t.Errorf("stored %s is %+v, %v", text, again, err)
	}
	var old principal.Principal
	if err := json.Unmarshal([]byte(`{"id":"key:laptop","account":"person:ada/acme","limits":{"budget":5}}`), &old); err != nil || old.ID != ada.ID || old.Client != "key laptop" || old.KeyLimits.Budget != 5 {
		t.Errorf("stored before: %+v, %v", old, err)
	}
}
