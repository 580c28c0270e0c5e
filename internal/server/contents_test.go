package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// otherHashes are the columns whose names look like hashes of contents, and that have
// something else, with what that is.
var otherHashes = map[string]string{
	"access_keys.hash": "of a token", "access_sessions.hash": "of a cookie", "people_sessions.hash": "of a cookie",
	"as_codes.hash": "of a code", "as_devices.hash": "of a code", "as_tokens.hash": "of a token",
	"approvals.digests": "of entries of a plan",
	"audit_chains.hash": "of an entry", "audit_chains.cut_hash": "of an entry",
	"pins.digest": "of the definition of a tool", "pins.refused": "of the definition of a tool",
	"workflow_status.parent_workflow_id": "the id of a job",
}

// writtenHashes are the columns in which people and scripts write what they like, also
// hashes. Whoever reads one there must have the content, so they keep none.
var writtenHashes = map[string]string{
	"approvals.output": "what a script printed", "jobs.output": "likewise", "job_said.lines": "likewise", "job_live.message": "likewise",
	"jobs.params": "what somebody gave a script", "session_turns.params": "likewise", "session_turns.source": "what somebody wrote",
	"jobs.result": "what a script returned", "jobs.error": "likewise", "approvals.outcome": "likewise", "kept_results.value": "likewise",
	"jobs.tail": "what a script did", "approvals.plan": "likewise", "approvals.kept": "likewise", "session_turns.journal": "likewise",
	"audit_log.detail": "what somebody gave a tool and got, for a week", "audit_sessions.words": "likewise",
	"kv.value": "what a script stored", "sessions.state": "the variables of a script",
}

// TestEveryHashIsKnown checks that every column with hashes of contents is known, so that no
// content is removed that something needs: it looks at the names of all columns, and at what
// is in them after people have used everything that stores hashes. If you add a column: list
// it in Contents of its package and in contentColumns, or above.
func TestEveryHashIsKnown(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, c := range slices.Concat(artifact.Contents(), contentColumns()) {
		if c.Where == "" && c.Why == "" {
			t.Errorf("%s.%s keeps no content, and does not say why", c.Table, c.Name)
		}
		known[c.Table+"."+c.Name] = true
	}
	tables.Each(t, func(t *testing.T, database string) {
		url, srv := start(t, config.Sources{
			File: configtest.WriteFile(t, withPeople+"[music]\nenabled = true\n[approvals]\n\"hootenanny.garden_set_tempo\" = \"all\"\n"),
			Env:  config.Environment{"LUANETTE_DATABASE": database, "LUANETTE_OAUTH_KEY": "a key that is long enough"},
		})
		ann := newPerson(t, url, srv, "ann")
		ann.work()
		ann.storeHashes(srv)
		clocktest.Await(t, func() bool { // a job asks before it sets the tempo
			_, filled := columnsWithHashes(t, database)
			return filled["approvals.hash"] != ""
		})
		named, filled := columnsWithHashes(t, database)
		for _, column := range named {
			if !known[column] && otherHashes[column] == "" {
				t.Errorf("%s looks like the hash of a content", column)
			}
		}
		for column, hash := range filled {
			if !known[column] && writtenHashes[column] == "" {
				t.Errorf("%s has the hash of a content: %s", column, hash)
			}
		}
	})
}

// storeHashes lets hashes of contents get wherever they can.
func (s someone) storeHashes(srv *Server) {
	s.t.Helper()
	s.do("POST", "/tools/lua_eval", `{"session_id":"hashes","code":"h = cas.store('a content') kv.set('hash', h) return string.rep(h .. ' ', 2000)"}`, "")
	source := s.do("POST", "/tools/script_store", `{"content":"function describe() return { name = 'hashes', description = 'stores', params = { hash = { type = 'string' } } } end function main(p) local h = cas.store('of a job') log.info(h) return { h, mcp.hootenanny.garden_create_region { position = 0, duration = 1, behavior_type = 'play_content', content_id = h }, mcp.hootenanny.garden_set_tempo { bpm = 90 } } end"}`, "hash")
	s.do("POST", "/tools/script_publish", `{"script_hash":"`+source+`"}`, "")
	s.do("POST", "/tools/lua_execute", `{"script_hash":"`+source+`","params":{"hash":"`+source+`"}}`, "job_id")
	ctx := principal.With(s.t.Context(), principal.Principal{ID: "person:" + s.id})
	parent, _, err := srv.contents.Put(ctx, strings.NewReader("parent"), artifact.Details{})
	if err != nil {
		s.t.Fatal(err)
	}
	child, _, err := srv.contents.Put(ctx, strings.NewReader("child"), artifact.Details{Parent: parent.Hash})
	if err == nil {
		_, err = srv.contents.Delete(ctx, child.Hash)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.do("POST", "/tools/lua_eval", `{"code":"return mcp.hootenanny.abc_to_midi { abc = 'X:1\\nK:C\\nCDEF|', variation_set_id = 'set' }"}`, "")
}

// columnsWithHashes returns the columns whose names look like hashes of contents, and those
// that have the hash of a stored content, with an example.
func columnsWithHashes(t *testing.T, database string) (named []string, filled map[string]string) {
	t.Helper()
	looks := regexp.MustCompile(`hash|digest|content|blob|parent|artifact|^ref|_ref|cas`)
	stored := map[string]bool{}
	filled = map[string]string{}
	err := db.ReadDump(t.Context(), database, func(d *db.Dump) error {
		for _, table := range d.Tables {
			for _, column := range table.Columns {
				if looks.MatchString(column) {
					named = append(named, table.Name+"."+column)
				}
			}
		}
		collect := func(table, _, hash string) { stored[hash] = stored[hash] || table == "contents" }
		compare := func(table, column, hash string) {
			if stored[hash] {
				filled[table+"."+column] = hash
			}
		}
		return errors.Join(eachHash(t.Context(), d, collect), eachHash(t.Context(), d, compare))
	})
	if err != nil {
		t.Fatal(err)
	}
	return named, filled
}

// eachHash calls take for everything in a database that has the form of a hash.
func eachHash(ctx context.Context, d *db.Dump, take func(table, column, hash string)) (err error) {
	form := regexp.MustCompile(`[0-9a-f]{64}`)
	for _, table := range d.Tables {
		err = errors.Join(err, d.Rows(ctx, table, func(row []any) error {
			for i, v := range row {
				if raw, ok := v.([]byte); ok {
					v = string(raw)
				}
				for _, hash := range form.FindAllString(fmt.Sprint(v), -1) {
					take(table.Name, table.Columns[i], hash)
				}
			}
			return nil
		}))
	}
	return err
}

// TestErasedBytesAreGone erases a person on both databases. Nothing that only they stored is
// left in any file: neither in the contents, nor in the index of words, nor in parts of the
// database that are not used any more. A colleague who stored the same has it still.
func TestErasedBytesAreGone(t *testing.T) {
	t.Parallel()
	tables.Each(t, func(t *testing.T, database string) {
		url, srv := startWithPeople(t, database)
		ann, bob := newPerson(t, url, srv, "ann"), newPerson(t, url, srv, "bob")
		folders := []string{srv.config.Data}
		if path := db.PathOf(database); path != "" {
			folders = append(folders, filepath.Dir(path))
		}
		for _, who := range []someone{ann, bob} {
			who.do("POST", "/tools/lua_eval", `{"code":"return cas.store(('both quokka '):rep(10))"}`, "")
		}
		ann.do("POST", "/tools/lua_eval", `{"session_id":"s","code":"x = ('wombat '):rep(9000) return cas.store(x)"}`, "")
		ann.do("POST", "/tools/script_store", `{"tags":["wombat"],"content":"function main() return 'wombat' end"}`, "hash")
		hash := ann.do("POST", "/tools/script_store", `{"tags":["deleted wombat"],"content":"return 'deleted wombat'"}`, "hash")
		ann.do("DELETE", "/api/v1/library/"+hash, "", "")
		if len(filesWith(t, folders, "wombat")) == 0 && len(folders) > 1 {
			t.Fatal("nothing is stored")
		}
		ann.do("DELETE", "/api/v1/me", "", "pseudonym")
		if left := filesWith(t, folders, "wombat"); len(left) > 0 {
			t.Errorf("it is left in %v", left)
		}
		if left := dbtest.TablesWith(t, database, "wombat"); len(left) > 0 {
			t.Errorf("it is left in %v", left)
		}
		both := cas.Sum([]byte(strings.Repeat("both quokka ", 10))).String()
		bob.do("POST", "/tools/lua_eval", `{"code":"assert(cas.read('`+both+`') == ('both quokka '):rep(10))"}`, "")
		bob.do("DELETE", "/api/v1/me", "", "pseudonym")
		if left := filesWith(t, folders, "quokka"); len(left) > 0 {
			t.Errorf("after both are erased, in %v", left)
		}
	})
}

// filesWith returns the files in folders that have a text, in capital letters or not.
func filesWith(t *testing.T, folders []string, text string) (found []string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			if bytes.Contains(bytes.ToLower(content), bytes.ToLower([]byte(text))) {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
