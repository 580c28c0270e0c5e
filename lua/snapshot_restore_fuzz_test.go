package lua

import (
	"bytes"
	"context"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fuzzLibraries are those a hostile snapshot may use: nothing outside the
// state, but everything inside it.
func fuzzLibraries() []*Library {
	return []*Library{Base, CoroutineLib, TableLib, StringLib, MathLib, UTF8Lib, DebugLib, Package}
}

// contents are snapshots of the programs of testdata/transfer and of some
// smaller ones, without their checksums.
func contents(t testing.TB) [][]byte {
	t.Helper()
	sources := []string{
		"", smallSession, "x = {1, 2, 3, a = {b = 'c'}} x.x = x",
		"co = coroutine.wrap(function(...) local a <close> = setmetatable({}, {__close = function() coroutine.yield() end}) return ... end) co(1, 2)",
		"co = coroutine.wrap(function(...) for k, v in pairs({a = 1}) do print(pcall(coroutine.yield, k .. v)) end end) co(1, 2)",
	}
	programs, err := filepath.Glob("testdata/transfer/*.lua")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range programs {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(source), "\n----\n")
		sources = append(sources, first)
	}
	var list [][]byte
	for _, source := range sources {
		s := New(Options{Seed: 1})
		if err := s.Open(fuzzLibraries()...); err != nil {
			t.Fatal(err)
		}
		if _, err := run(s, source, "=seed"); err != nil {
			t.Fatal(err)
		}
		var data bytes.Buffer
		if err := s.Snapshot(&data); err != nil {
			t.Fatal(err)
		}
		list = append(list, data.Bytes()[:data.Len()-checksumSize])
	}
	return list
}

// FuzzRestore gives damaged snapshots a valid checksum. Restore refuses them,
// or what it returns can be used like any other state.
func FuzzRestore(f *testing.F) {
	for _, content := range contents(f) {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) { restoreDamaged(content) })
}

func restoreDamaged(content []byte) {
	sum := crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
	data := append(bytes.Clone(content), byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
	s, err := Restore(data, RestoreOptions{Libraries: fuzzLibraries(), Budget: Budget{Memory: 64 << 20}})
	if err == nil {
		exercise(s)
	}
}

// exercise uses what there is in a state: functions, coroutines, tables.
func exercise(s *State) {
	ctx := context.Background()
	call := func(fn Value, args ...Value) {
		s.SetBudget(Budget{Steps: 3000, Memory: 64 << 20})
		_, _ = s.Call(ctx, fn, args...)
	}
	v := newSurvey(s)
	v.run()
	resume, _ := CoroutineLib.Function("resume")
	traceback, _ := DebugLib.Function("traceback")
	getlocal, _ := DebugLib.Function("getlocal")
	tostring, _ := Base.Function("tostring")
	for _, t := range v.threads[:min(60, len(v.threads))] {
		call(traceback.Value(), t.Value())
		for n := range 4 {
			call(getlocal.Value(), t.Value(), Int(1), Int(int64(n-1)))
		}
		for range 3 {
			call(resume.Value(), t.Value(), Int(1), String("x"))
		}
	}
	for _, t := range v.tables[:min(60, len(v.tables))] {
		call(tostring.Value(), t.Value())
		for k, x := range t.All() {
			_, _, _, _ = t.Next(k)
			_ = x
		}
		_ = t.Set(Int(int64(t.Len())+1), Int(1))
		_ = t.Set(String("new"), Int(1))
	}
	for _, f := range v.functions[:min(60, len(v.functions))] {
		call(f.Value(), Int(1), Int(2))
	}
	s.collect()
	s.gc.pending = nil
	if f, err := s.Fork(); err == nil {
		_, _ = f.SnapshotPartial(io.Discard)
	}
	_, _ = s.SnapshotPartial(io.Discard)
	closing, _ := CoroutineLib.Function("close")
	for _, t := range v.threads[:min(60, len(v.threads))] {
		call(closing.Value(), t.Value())
	}
}

// TestRestoreDamaged changes bytes all over some snapshots.
func TestRestoreDamaged(t *testing.T) {
	t.Parallel()
	for _, content := range contents(t) {
		step := max(1, len(content)/150)
		for at := snapshotHead; at < len(content); at += step {
			for _, flip := range []byte{0x01, 0x10, 0x80} {
				damaged := bytes.Clone(content)
				damaged[at] ^= flip
				restoreDamaged(damaged)
			}
		}
	}
}
