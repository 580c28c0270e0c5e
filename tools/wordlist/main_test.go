package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWordsAreTakenFromFrequentMeanings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"index.verb": "  1 licence\ndelete v 2 1 @ 2 1 00000001 00000002  \nget_rid_of v 1 1 @ 1 1 00000001  \nrare v 3 1 @ 3 0 00000008 00000009 00000001  \nwrite v 2 1 @ 2 2 00000003 00000004  \n",
		"data.verb":  "00000001 30 v 03 delete 0 get_rid_of 0 rare 0 000 | remove\n00000003 30 v 01 write 0 000 | put down\n",
		"verb.exc":   "wrote write\nwriting write\nunknown nothing\n",
		"index.noun": "folder n 1 1 @ 1 1 00000005  \ndirectory n 1 1 @ 1 1 00000005  \n",
		"data.noun":  "00000005 10 n 02 folder 0 directory 0 000 | a place\n",
		"noun.exc":   "\n",
		"words.txt":  "# list\nverbs: delete\nnouns: directory\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run(&out, dir, filepath.Join(dir, "words.txt")); err != nil {
		t.Fatal(err)
	}
	want := "get rid of > delete\nfolder > directory\nwrote < write\n"
	if got := strings.TrimPrefix(out.String(), header); got != want {
		t.Errorf("made %q, want %q", got, want)
	}
	if err := run(&out, filepath.Join(dir, "none"), filepath.Join(dir, "words.txt")); err == nil || !strings.Contains(err.Error(), "wordnet-base") {
		t.Errorf("error = %v", err)
	}
}
