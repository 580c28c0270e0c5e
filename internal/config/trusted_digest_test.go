package config

import (
	"path/filepath"
	"testing"

	"github.com/luanette/luanette/internal/config/configtest"
)

// TestDigestsOfTrustStay checks that what a user trusts stays trusted with a new version:
// the digests of unchanged settings are those of earlier ones.
func TestDigestsOfTrustStay(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, `
[secrets.gh]
value = "${env:GH}"
hosts = ["api.github.com"]

[upstreams.plain]
command = "plain"

[upstreams.program]
command = "npx"
args = ["-y", "server", "${HOME}"]
env = { TOKEN = "secret:gh", MODE = "x" }
env_file = "more.env"
cwd = "sub"
sandbox = "strict"
read = ["data"]
network = ["api.example:443"]
exec = true
timeout = "5s"

[upstreams.remote]
url = "https://a.example/mcp?x=${X}"
headers = { "X-Key" = "${env:KEY}" }
bearer_env = "TOKEN"
record = "calls.jsonl"

[upstreams.remote.oauth]
client_id = "me"
client_secret = "${env:S}"
scopes = ["a", "b"]
issuer = "https://issuer.example"
redirect_port = 8080

[upstreams.pets]
openapi = "pets.json"

[upstreams.pets.api]
base_url = "https://pets.example"
query = { key = "${env:Q}" }
user = "ann"
password = "${env:P}"
reload = "5m"
idempotency_header = "Idempotency-Key"

[upstreams.orders]
grpc = "orders.example:443"

[tools.log]
command = ["git", "log"]
timeout = "3s"

[hooks.push]
script = "deploy"
secret = "${env:HOOK}"
`)
	configtest.ReplaceFile(t, filepath.Join(filepath.Dir(file), "more.env"), "A=b\n")
	loaded, err := Load(Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"upstreams.orders":  "08935f1e1091032bc4e24baa2eee3e261b83b3ef2fe4a9e1e465fed1112b3cdb",
		"upstreams.pets":    "5cf07bdbf2145eac7ff0477547ce4eaac99a3aa189a96d21d4c3b31388bd67d1",
		"upstreams.plain":   "989bf724c23abced371db44d7986e095a2e56642d4ae4f7797a3a137d1a7a062",
		"upstreams.program": "59d5b453453cba2c5f76d498a8a2a374cba5bd92ea300cc8af70c465c5716e91",
		"upstreams.remote":  "670e7efc42299ccfa090822a30862ac2479f9e5e39b7f8a3902370e59588f5ce",
		"hooks.push":        "e5a4a7c67b5532a87e3077d9546516c9e9ac9f45e46b7bf91bf38ef48e122e0f",
		"tools.log":         "e81a9931566d64623ec31d383b322892ad9a4399e1a601a8fa6a247930711d60",
	}
	for _, item := range loaded.NeedingTrust() {
		if item.Hash != want[item.Key] {
			t.Errorf("%q: %q, want %q", item.Key, item.Hash, want[item.Key])
		}
		delete(want, item.Key)
	}
	for key := range want {
		t.Errorf("%s needs no trust", key)
	}
}
