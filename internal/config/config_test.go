package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config/configtest"
)

func TestLaterSourcesWin(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, "listen = \"127.0.0.1:1\"\ndata = \"from-file\"\n[log]\nlevel = \"warn\"\n[mcp]\nsession_idle = \"5m\"\nimport = [\"a.json\"]\n")
	loaded, err := Load(Sources{
		File:  file,
		Env:   Environment{"LUANETTE_LISTEN": "127.0.0.1:2", "LUANETTE_LOG_LEVEL": "error", "LUANETTE_MCP_IMPORT": "b.json, c.json", "HOME": "/home/me"},
		Flags: map[string]string{"listen": "127.0.0.1:3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Listen != "127.0.0.1:3" || loaded.Log.Level != "error" || loaded.Data != "from-file" {
		t.Errorf("flags, environment and file in the wrong order: %+v", loaded.Config)
	}
	if time.Duration(loaded.MCP.SessionIdle) != 5*time.Minute {
		t.Errorf("session_idle = %v", loaded.MCP.SessionIdle)
	}
	if got := strings.Join(loaded.MCP.Import, "|"); got != "b.json|c.json" {
		t.Errorf("mcp.import = %q", got)
	}
	for key, want := range map[string]string{"listen": "flag", "log.level": "environment", "data": "file", "log.format": "default"} {
		if got := loaded.origin(key); got != want {
			t.Errorf("origin of %s = %q, want %q", key, got, want)
		}
	}
	if want := "sqlite:" + filepath.Join("from-file", "luanette.db"); loaded.Database != want {
		t.Errorf("database = %q, want %q", loaded.Database, want)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file  string
		env   Environment
		flags map[string]string
		wants []string
	}{
		"count without a role":                {file: "[[policy]]\ntool = \"x.y\"\ndo = \"approve\"\ncount = 2\n", wants: []string{"policy 1: count needs by"}},
		"role that denies":                    {file: "[[policy]]\ntool = \"x.y\"\ndo = \"deny\"\nby = \"user\"\n", wants: []string{"are for do = \"approve\""}},
		"role without people":                 {file: "[[policy]]\ntool = \"x.y\"\ndo = \"approve\"\nby = \"user\"\n", wants: []string{"needs people who sign in", "docs/people.md"}},
		"exchange for another login":          {file: "[upstreams.x]\nurl = \"https://x.example/mcp\"\noauth = { audience = \"x\" }\n", wants: []string{"upstreams.x.oauth: audience, subject and on-behalf-of are for tokens that are exchanged"}},
		"exchange at any issuer":              {file: "[upstreams.x]\nurl = \"https://x.example/mcp\"\nlogin = \"exchange\"\noauth = { client_id = \"x\" }\n", wants: []string{"client_id needs issuer"}},
		"exchange of an unknown kind":         {file: "[upstreams.x]\nurl = \"https://x.example/mcp\"\nlogin = \"exchange\"\noauth = { subject = \"x\" }\n", wants: []string{"upstreams.x.oauth.subject", "refresh_token"}},
		"id-jag without a client":             {file: "[upstreams.x]\nurl = \"https://x.example/mcp\"\nlogin = \"id-jag\"\n", wants: []string{"needs oauth.issuer and oauth.client_id"}},
		"identity assertions without clients": {file: "public_url = \"https://hub.example\"\n[identity.x]\nissuer = \"https://x.example\"\nclient_id = \"a\"\nroles = [\"user\"]\nid_jag = true\n", wants: []string{"identity.x: id_jag and clients need each other"}},
		"role that nobody has":                {file: "public_url = \"https://hub.example\"\n[identity.x]\nissuer = \"https://x.example\"\nclient_id = \"a\"\nroles = [\"user\"]\n[[policy]]\ntool = \"x.y\"\ndo = \"approve\"\nby = \"finance\"\n", wants: []string{"no role \"finance\"", "operator"}},
		"public address with a query":         {file: "public_url = \"https://hub.example/a?b\"\n", wants: []string{"is not https://HOST or https://HOST/PATH"}},
		"unknown key":                         {file: "listen = \"x:1\"\nlisten_adress = \"y\"\n", wants: []string{":2:1: unknown key \"listen_adress\"", "docs/configuration.md"}},
		"near key":                            {file: "databse = \"x\"\n", wants: []string{":1:1: unknown key \"databse\"", `did you mean "database"`}},
		"near key in section":                 {file: "[log]\nlevle = \"info\"\n", wants: []string{":2:1: unknown key \"log.levle\"", `did you mean "log.level"`}},
		"near key of upstream":                {file: "[upstreams.fs]\ncomand = \"x\"\n", wants: []string{"upstreams.fs.comand", `did you mean "upstreams.fs.command"`}},
		"inline table":                        {file: "[upstreams.a]\ncommand = \"x\"\nfaults = { drp = 0.5 }\n", wants: []string{":3:12: unknown key \"upstreams.a.faults.drp\"", `did you mean "upstreams.a.faults.drop"`}},
		"section of faults":                   {file: "[upstreams.a]\ncommand = \"x\"\n[upstreams.a.faults]\nfial = 0.5\n", wants: []string{":4:1: unknown key", `did you mean "upstreams.a.faults.fail"`}},
		"two unknown keys":                    {file: "a_b = 1\n[log]\nfromat = \"json\"\n", wants: []string{":1:1: unknown key \"a_b\"", ":3:1: unknown key \"log.fromat\""}},
		"wrong type":                          {file: "listen = 8081\n", wants: []string{":1:10: listen: expected string, got integer"}},
		"bad duration":                        {file: "[mcp]\nsession_idle = \"soon\"\n", wants: []string{":2:", "mcp.session_idle: \"soon\" is not a duration"}},
		"no TOML":                             {file: "listen 8081\n", wants: []string{":1:"}},
		"upstream without":                    {file: "[upstreams.fs]\ntimeout = \"1s\"\n", wants: []string{"upstreams.fs", "url or command"}},
		"bad level":                           {file: "[log]\nlevel = \"loud\"\n", wants: []string{"log.level", "debug, info, warn or error"}},
		"number that is too large":            {file: "gc_percent = 20000\n", wants: []string{"gc_percent: 20000 is too large", "use 10000 or less"}},
		"duration that is too small":          {file: "[jobs]\nkeep_failed = \"0s\"\n", wants: []string{"jobs.keep_failed: 0s is too small", "use 1ms or more"}},
		"negative value in a table":           {file: "[audit.keep_orgs]\nacme = \"-1h\"\n", wants: []string{"audit.keep_orgs.acme: -1h0m0s is too small"}},
		"unknown word in a list":              {file: "[roles.x]\nscopes = [\"root\"]\n", wants: []string{"roles.x.scopes: \"root\" is not a choice", "read, observe or metrics"}},
		"no address":                          {file: "[music.services]\nclap = \"localhost:1\"\n", wants: []string{"music.services.clap", "no http address"}},
		"star in approvals":                   {file: "[approvals]\n\"fs.*\" = \"writes\"\n", wants: []string{`approvals."fs.*"`, "without *", "of its tools: fs"}},
		"unknown variable":                    {env: Environment{"LUANETTE_LISTN": "x"}, wants: []string{"LUANETTE_LISTN", "LUANETTE_LISTEN"}},
		"bad variable":                        {env: Environment{"LUANETTE_MCP_SESSION_IDLE": "soon"}, wants: []string{"LUANETTE_MCP_SESSION_IDLE", "not a duration"}},
		"bad flag":                            {flags: map[string]string{"log.format": "xml"}, wants: []string{"log.format", "text or json"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sources := Sources{Env: c.env, Flags: c.flags}
			if c.file != "" {
				sources.File = configtest.WriteFile(t, c.file)
			}
			_, err := Load(sources)
			if err == nil {
				t.Fatal("no error")
			}
			if fault.CodeOf(err) != fault.Config {
				t.Errorf("code = %s", fault.CodeOf(err))
			}
			said := err.Error() + "\n" + fault.HintOf(err)
			for _, want := range c.wants {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
		})
	}
}

func TestANamedFileMustExist(t *testing.T) {
	t.Parallel()
	if _, err := Load(Sources{File: filepath.Join(t.TempDir(), "none.toml")}); fault.CodeOf(err) != fault.Config {
		t.Errorf("err = %v", err)
	}
}

func TestDataFolderFollowsXDG(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  Environment
		want string
	}{
		{Environment{"XDG_DATA_HOME": "/xdg", "HOME": "/home/me"}, "/xdg/luanette"},
		{Environment{"HOME": "/home/me"}, "/home/me/.local/share/luanette"},
	} {
		if got := dataFolder(c.env); got != filepath.FromSlash(c.want) {
			t.Errorf("dataFolder(%v) = %q, want %q", c.env, got, c.want)
		}
	}
}

func TestShowHidesSecrets(t *testing.T) {
	t.Parallel()
	file := configtest.WriteFile(t, `
database = "postgres://me:hunter2@db.example/luanette"
public_url = "https://hub.example"
[upstreams.gh]
url = "https://example.test/mcp?key=hunter2"
headers = { Authorization = "Bearer hunter2" }
[upstreams.fs]
command = "npx"
env = { TOKEN = "hunter2" }
[orgs.acme.upstreams.wiki]
url = "https://me:hunter2@wiki.example/mcp"
headers = { Authorization = "Bearer hunter2" }
[keys.web]
hash = "sha256:f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7"
scopes = ["mcp"]
[identity.corp]
issuer = "https://login.example"
client_id = "hub"
client_secret = "hunter2"
roles = ["user"]
id_jag = true
clients = { other = "hunter2" }
`)
	loaded, err := Load(Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := loaded.Show(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hunter2") || strings.Contains(out.String(), "f52fbd32") {
		t.Errorf("a secret is shown:\n%s", &out)
	}
	for _, want := range []string{"[upstreams.'wiki@acme'.headers]", "[keys.web]", "[identity.corp.clients]", "postgres://me:(hidden)@db.example", "LUANETTE_LISTEN", "Authorization", "[upstreams.fs]", "# file; LUANETTE_DATABASE"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not show %q:\n%s", want, &out)
		}
	}
}

// TestShownConfigurationCanBeLoaded checks that what Show writes is a file that gives the
// same configuration.
func TestShownConfigurationCanBeLoaded(t *testing.T) {
	t.Parallel()
	loaded, err := Load(Sources{
		File: configtest.WriteFile(t, `
approve = "writes"
trust = "pin"
max_connections = 7
public_url = "https://hub.example"
[upstreams.fs]
command = "npx"
env = { TOKEN = "${env:TOKEN}" }
[upstreams.tracker]
url = "https://tracker.example/mcp"
oauth = { client_id = "hub", scopes = ["read"] }
org = ["acme", "beta"]
[roles.support]
scopes = ["mcp"]
[identity.corp]
issuer = "https://login.example"
client_id = "hub"
[identity.corp.orgs]
"acme-staff" = "acme/support"
[orgs.acme]
max_upstreams = 3
[orgs.acme.quota]
calls = 5
[[orgs.acme.policy]]
tool = "mail.*"
do = "approve"
by = "support"
[orgs.acme.upstreams.wiki]
url = "https://wiki.example/mcp"
`),
		Env: Environment{"HOME": "/home/me"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := loaded.Show(&out); err != nil {
		t.Fatal(err)
	}
	again, err := Load(Sources{File: configtest.WriteFile(t, out.String()), Env: Environment{"HOME": "/elsewhere"}})
	if err != nil {
		t.Fatal(err)
	}
	was := Entries(&loaded.Config)
	for i, e := range Entries(&again.Config) {
		if !sameValue(e.Value, was[i].Value) {
			t.Errorf("%s = %v, want %v", e.Key, e.Value, was[i].Value)
		}
	}
}
