package secret_test

import (
	"testing"

	"github.com/luanette/luanette/internal/base/secret"
)

func boxOf(key string) secret.Box {
	return secret.Box{Key: func() (secret.Text, error) { return secret.New(key), nil }}
}

// TestKeyIsChanged checks that the first line of the key encrypts, that all lines decrypt, and that
// the former is not needed once everything is encrypted again.
func TestKeyIsChanged(t *testing.T) {
	t.Parallel()
	const former, next = "the former key of this test", "the next key of this test"
	before, meanwhile, after := boxOf(former), boxOf(next+"\n"+former+"\n"), boxOf(next)
	if before.Replaces() || !meanwhile.Replaces() || after.Replaces() {
		t.Error("Replaces is wrong")
	}
	sealed, err := before.Seal("token", "login", "ann")
	if err != nil {
		t.Fatal(err)
	}
	opens := func(box secret.Box, sealed []byte) bool {
		var got string
		return box.Open(sealed, &got, "login", "ann") == nil && got == "token"
	}
	if !opens(meanwhile, sealed) || opens(after, sealed) {
		t.Error("what the former key has encrypted is opened wrongly")
	}
	again, err := meanwhile.Reseal(sealed, "login", "ann")
	if err != nil || !opens(after, again) || !opens(meanwhile, again) || opens(before, again) {
		t.Errorf("encrypted again: %v", err)
	}
	if twice, err := meanwhile.Reseal(again, "login", "ann"); twice != nil || err != nil {
		t.Errorf("what has the first key is encrypted again: %v", err)
	}
	if _, err := meanwhile.Reseal(sealed, "login", "bob"); err == nil {
		t.Error("it is encrypted for another")
	}
	if _, err := boxOf(next+"\nshort").Seal("token", "login"); err == nil {
		t.Error("a short line is a key")
	}
}
