package access_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/access"
	"github.com/luanette/luanette/internal/fault"
)

func TestAdmit(t *testing.T) {
	t.Parallel()
	today := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	keys := access.New([]access.Key{
		{Name: "root", Hash: access.HashOf("root-token"), Scopes: []access.Scope{access.Admin, access.Chat}},
		{Name: "web", Hash: access.HashOf("web-token"), Scopes: []access.Scope{access.Chat}},
		{Name: "acme", Hash: access.HashOf("acme-token"), Scopes: []access.Scope{access.Org}, Org: "acme"},
		{Name: "acme chat", Hash: access.HashOf("acme-chat"), Scopes: []access.Scope{access.Chat}, Org: "acme"},
		{Name: "nobody's", Hash: access.HashOf("nobody"), Scopes: []access.Scope{access.Org}},
		{Name: "old", Hash: access.HashOf("old-token"), Scopes: []access.Scope{access.Admin}, Expires: today.Add(-time.Hour)},
	}, func() time.Time { return today })
	tests := []struct {
		name, header string
		scope        access.Scope
		org          string
		want         fault.Code // empty: admitted
	}{
		{"no header", "", access.Chat, "acme", fault.NeedsAuth},
		{"another kind", "Basic d2ViLXRva2Vu", access.Chat, "acme", fault.NeedsAuth},
		{"nothing", "Bearer ", access.Chat, "acme", fault.NeedsAuth},
		{"wrong", "Bearer guess", access.Chat, "acme", fault.Denied},
		{"expired", "Bearer old-token", access.Chat, "acme", fault.Denied},
		{"chat", "Bearer web-token", access.Chat, "acme", ""},
		{"in any letters", "bearer  web-token", access.Chat, "", ""},
		{"chat is not admin", "Bearer web-token", access.Admin, "", fault.Denied},
		{"chat is not an organisation's", "Bearer web-token", access.Org, "acme", fault.Denied},
		{"admin is everything", "Bearer root-token", access.Org, "acme", ""},
		{"an organisation's own", "Bearer acme-token", access.Org, "acme", ""},
		{"which may chat", "Bearer acme-token", access.Chat, "acme", ""},
		{"not another's", "Bearer acme-token", access.Org, "other", fault.Denied},
		{"not the house's", "Bearer acme-token", access.Admin, "", fault.Denied},
		{"not another's chat", "Bearer acme-chat", access.Chat, "other", fault.Denied},
		{"an organisation that is none", "Bearer nobody", access.Org, "", fault.Denied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			if tt.header != "" {
				r.Header.Set("Authorization", tt.header)
			}
			_, err := keys.Admit(r, tt.scope, tt.org)
			if tt.want == "" && err != nil || tt.want != "" && fault.CodeOf(err) != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	open := access.New(nil, nil)
	if _, err := open.Admit(httptest.NewRequest(http.MethodGet, "/", nil), access.Admin, ""); err != nil {
		t.Errorf("without keys: %v", err)
	}
}

func TestParseHash(t *testing.T) {
	t.Parallel()
	hash, err := access.ParseHash("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
	if err != nil || hash != access.HashOf("test") {
		t.Errorf("%x, %v", hash, err)
	}
	for _, bad := range []string{"", "test", "sha256:", "sha256:zz", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"} {
		if _, err := access.ParseHash(bad); fault.CodeOf(err) != fault.Config {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
