package server

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/sse"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
)

// twoOwners are keys of two services on a server with music.
const twoOwners = "[music]\nenabled = true\n[keys.ann]\nenv = \"ANN\"\nscopes = [\"mcp\", \"read\"]\n[keys.ben]\nenv = \"BEN\"\nscopes = [\"mcp\", \"read\"]\n"

func startTwoOwners(t *testing.T) (ann, ben keyClient, srv *Server) {
	t.Helper()
	url, srv := start(t, config.Sources{File: configtest.WriteFile(t, twoOwners), Env: config.Environment{"ANN": "ann-token", "BEN": "ben-token"}})
	return keyClient{t, url, "ann-token"}, keyClient{t, url, "ben-token"}, srv
}

// tool calls a tool over HTTP and decodes its answer, which must have the status.
func (v keyClient) tool(status int, name, args string, into any) {
	v.t.Helper()
	header, value := httpjsontest.Bearer(v.token)
	answer, text := httpjsontest.Read(v.t, http.MethodPost, v.url+"/tools/"+name, args, header, value)
	if answer.StatusCode != status {
		v.t.Errorf("%s %s: %d %s", name, args, answer.StatusCode, text)
	}
	if status == http.StatusOK && json.Unmarshal([]byte(text), into) != nil {
		v.t.Errorf("%s: %s", name, text)
	}
}

// owned is an event of any type.
type owned struct {
	kind  string
	Whose string `json:"whose"`
	Last  bool   `json:"last"`
}

func (o owned) EventType() string { return o.kind }

// ofMusic are the types that event_poll shows.
var ofMusic = []string{"artifact.", "job.", "transport.", "marker.", "region.", "beat."}

// TestEventsOfOthers publishes an event of each type for one owner, and reads events in every
// way as the owner and as another one. Nobody but the owner sees them.
func TestEventsOfOthers(t *testing.T) {
	t.Parallel()
	ann, ben, srv := startTwoOwners(t)
	listening := srv.bus.Subscribe(event.Options{Types: []string{"script.listening"}})
	defer listening.Close()
	heard := map[keyClient]chan []string{ann: make(chan []string, 1), ben: make(chan []string, 1)}
	for who, types := range heard {
		go func() { types <- who.eventsOfScript() }()
		if _, err := listening.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	all := slices.DeleteFunc(event.Types(), func(kind string) bool { return kind == event.Missed{}.EventType() })
	for _, kind := range all {
		srv.bus.PublishFor(principal.Owner{ID: "key:ann"}, owned{kind: kind, Whose: "ann"})
	}
	for _, id := range []string{"key:ann", "key:ben"} {
		srv.bus.PublishFor(principal.Owner{ID: id}, owned{kind: "job.finished", Last: true})
	}
	music := slices.DeleteFunc(slices.Clone(all), func(kind string) bool {
		return !slices.ContainsFunc(ofMusic, func(family string) bool { return strings.HasPrefix(kind, family) })
	})
	for name, way := range map[string]struct {
		read func(keyClient) []string
		want []string
	}{
		"the stream":      {keyClient.eventsOfStream, all},
		"on of a script":  {func(who keyClient) []string { return <-heard[who] }, all},
		"hoot.event_poll": {keyClient.eventsPolled, music},
	} {
		if got := way.read(ann); !slices.Equal(got, way.want) {
			t.Errorf("%s: the owner sees %q, want %q", name, got, way.want)
		}
		if got := way.read(ben); len(got) > 0 {
			t.Errorf("%s: somebody else sees %q", name, got)
		}
	}
}

// eventsOfStream returns the types of ann's events in GET /api/v1/events, in order, up to the last.
func (v keyClient) eventsOfStream() (types []string) {
	v.t.Helper()
	header, value := httpjsontest.Bearer(v.token)
	answer := httpjsontest.Open(v.t, http.MethodGet, v.url+"/api/v1/events?after=all", "", header, value)
	events := sse.NewReader(answer.Body, 0)
	for {
		raw, err := events.Next()
		if err != nil {
			v.t.Errorf("read events: %v", err)
			return types
		}
		var e struct {
			Type string
			Data struct {
				Whose string
				Last  bool
			}
		}
		_ = json.Unmarshal(raw.Data, &e) // data of other events may have another form
		if e.Data.Last {
			return types
		}
		if e.Data.Whose != "" {
			types = append(types, e.Type)
		}
	}
}

// eventsOfScript returns them as a script hears them.
func (v keyClient) eventsOfScript() []string {
	var answer struct{ Result []string }
	code := `local types = json.array{}
on('*', function(e)
  if type(e.data) ~= 'table' then return end
  if e.data.last then events.stop() elseif e.data.whose then types[#types+1] = e.type end
end)
emit('script.listening', {})
events.run(20000)
return types`
	args, _ := json.Marshal(map[string]string{"code": code}) // a text is always encoded
	v.tool(http.StatusOK, "lua_eval", string(args), &answer)
	return answer.Result
}

// eventsPolled returns them as event_poll shows them.
func (v keyClient) eventsPolled() []string {
	for {
		var answer struct {
			Events []struct {
				Type string `json:"event_type"`
				Data struct {
					Whose string
					Last  bool
				}
			}
		}
		v.tool(http.StatusOK, "hootenanny/event_poll", `{"since_ms":600000,"limit":1000}`, &answer)
		var types []string
		for _, e := range answer.Events {
			if e.Data.Last {
				return types
			}
			if e.Data.Whose != "" {
				types = append(types, strings.Replace(e.Type, "_", ".", 1))
			}
		}
		if v.t.Failed() || v.t.Context().Err() != nil {
			return nil
		}
	}
}

// programsOwn are the files that subscribe as the program itself, with why nobody sees what is
// not theirs.
var programsOwn = map[string]string{
	"builtin/menu.go":             "notifies with VisibleTo",
	"cluster/eventrelay/relay.go": "other nodes publish with the owner",
	"mcp/upstream/manager.go":     "only waits",
	"mcp/upstreamset/set.go":      "acts on servers, shows nothing",
	"music/hootenanny/event.go":   "shows with VisibleTo",
	"server/tooling.go":           "acts on logins, shows nothing",
	"zmq/hootserver/server.go":    "whoever reaches the bridge acts as the owner of the server",
}

// TestSubscriptionsSayWhose checks that whatever subscribes to the events of all owners is known
// not to show them to others.
func TestSubscriptionsSayWhose(t *testing.T) {
	t.Parallel()
	subscribes := regexp.MustCompile(`(?i)(?:bus|events)\.Subscribe\(|Subscribe\(event\.Options`)
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(filepath.ToSlash(path), "test/") {
			return err
		}
		text, err := os.ReadFile(path)
		name := strings.TrimPrefix(filepath.ToSlash(path), "../")
		// Few files subscribe at all: the expression is slow under the race detector.
		if bytes.Contains(text, []byte("Subscribe(")) && subscribes.Match(text) && programsOwn[name] == "" {
			t.Errorf("%s subscribes to events of all owners: use SubscribeAs, or say in programsOwn why others see nothing of them", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSameContentOfTwoOwners checks that two owners of the same bytes have metadata and sets of
// variations of their own.
func TestSameContentOfTwoOwners(t *testing.T) {
	t.Parallel()
	ann, ben, _ := startTwoOwners(t)
	type artifact struct {
		ID       string
		Set      string `json:"variation_set_id"`
		Index    int    `json:"variation_index"`
		Metadata struct{ Of string }
	}
	var content struct{ Hash string }
	var of, again artifact
	for _, who := range []keyClient{ann, ben} {
		who.tool(http.StatusOK, "hootenanny/cas_store", `{"content_base64":"c2FtZQ","mime_type":"text/plain"}`, &content)
		who.tool(http.StatusOK, "hootenanny/artifact_create", `{"cas_hash":"`+content.Hash+`","variation_set_id":"takes","metadata":{"of":"`+who.token+`"}}`, &of)
		if of.Set != "takes" || of.Index != 1 {
			t.Errorf("%s made %+v", who.token, of)
		}
	}
	var more struct{ Hash string }
	ann.tool(http.StatusOK, "hootenanny/cas_store", `{"content_base64":"bW9yZQ","mime_type":"text/plain"}`, &more)
	ann.tool(http.StatusOK, "hootenanny/artifact_create", `{"cas_hash":"`+more.Hash+`","variation_set_id":"takes"}`, &again)
	for who, want := range map[keyClient]int{ann: 2, ben: 1} {
		var got artifact
		who.tool(http.StatusOK, "hootenanny/artifact_get", `{"id":"`+of.ID+`"}`, &got)
		if got.Metadata.Of != who.token {
			t.Errorf("%s sees the metadata of %s", who.token, got.Metadata.Of)
		}
		var list struct{ Artifacts []artifact }
		who.tool(http.StatusOK, "hootenanny/artifact_list", `{"variation_set_id":"takes"}`, &list)
		if len(list.Artifacts) != want {
			t.Errorf("%s has the variations %+v, want %d", who.token, list.Artifacts, want)
		}
	}
}

// TestContentsHaveOwners checks that no table has one row for a content of several people: what
// they say about it would be one another's.
func TestContentsHaveOwners(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, table := range personalTables() {
		covered[table.Name] = true
	}
	ofContents := map[string]bool{}
	for _, column := range contentColumns() {
		ofContents[column.Table] = true
	}
	byHash, owned := regexp.MustCompile(`hash +TEXT PRIMARY KEY|PRIMARY KEY \([^)]*\bhash\b`), regexp.MustCompile(`PRIMARY KEY \([^)]*\bowner\b`)
	for table, made := range tablesMade(t) {
		if (ofContents[table] || covered[table]) && otherHashes[table+".hash"] == "" && impersonal[table] == "" && byHash.MatchString(made.columns) && !owned.MatchString(made.columns) {
			t.Errorf("%s has one row for each content: whose is it?", table)
		}
	}
}
