package adminapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// learned counts words by caller.
type learned map[string]int64

func (l learned) Forget(ctx context.Context) (int64, error) {
	id := principal.Of(ctx).ID
	count := l[id]
	delete(l, id)
	return count, nil
}

func (l learned) Erase(context.Context) (int64, error) {
	count := int64(len(l))
	clear(l)
	return count, nil
}

func TestForgetLearned(t *testing.T) {
	t.Parallel()
	s := adminapi.New(adminapi.Options{Learned: learned{"key:web": 3, "key:a": 1, "key:b": 1}})
	web := principal.Principal{ID: "key:web", Scopes: []principal.Scope{principal.MCP}}
	if status, answer := request(t, s, web, "DELETE", "/api/v1/search/learned", ""); status != http.StatusOK || answer["forgotten"] != 3.0 {
		t.Errorf("own: %d %v", status, answer)
	}
	if status, _ := request(t, s, web, "DELETE", "/api/v1/search/learned/all", ""); status != http.StatusForbidden {
		t.Errorf("a key erased what was learned from all: %d", status)
	}
	if answer := expect(t, s, http.StatusOK, "DELETE", "/api/v1/search/learned/all", ""); answer["forgotten"] != 2.0 {
		t.Errorf("all: %v", answer)
	}
}
