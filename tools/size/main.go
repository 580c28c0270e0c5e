// Command size shows what each module adds to the binary, and fails when the binary is
// larger than allowed:
//
//	size bin/luanette
//
// The binary has no symbols, so it builds another that has them. A module's share is its
// machine code and data, and its part of the table of functions, which every function has
// an entry in.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// limit is the largest allowed size of the binary in bytes; the sandbox, APIs, the page and
// people have brought it here, and since then the table of words of the search (1.6 MB),
// the documentation (0.7 MB), and skills, Apps and settings on the page (0.3 MB). The goal is
// 56 MB.
const limit = 67_500_000

// perFunction is the size of a function's entries in the table of functions, on average.
const perFunction = 330

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: size BINARY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run(binary string) error {
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "size")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	whole := filepath.Join(folder, "luanette")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-w", "-o", whole, "./cmd/luanette").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	shares, err := modules(whole)
	if err != nil {
		return err
	}
	names := slices.SortedFunc(maps.Keys(shares), func(a, b string) int { return cmp.Compare(shares[b], shares[a]) })
	for _, name := range names[:min(len(names), 40)] {
		fmt.Printf("%7.2f MB  %s\n", float64(shares[name])/1e6, name)
	}
	fmt.Printf("%7.2f MB  %s, at most %.1f are allowed\n", float64(info.Size())/1e6, binary, limit/1e6)
	if info.Size() > limit {
		return fmt.Errorf("%s is too large: remove a dependency, or raise the limit in tools/size with a reason", binary)
	}
	return nil
}

// modules returns the bytes of each module of a binary with symbols.
func modules(binary string) (map[string]int64, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	names := []string{info.Main.Path}
	for _, dep := range info.Deps {
		names = append(names, dep.Path)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) }) // nested modules first
	out, err := exec.Command("go", "tool", "nm", "-size", binary).Output()
	if err != nil {
		return nil, fmt.Errorf("go tool nm: %w", err)
	}
	shares := map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 {
			continue
		}
		size, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil || !strings.ContainsAny(fields[2], "TtRr") { // data may be zero, and then is not in the file
			continue
		}
		if strings.ContainsAny(fields[2], "Tt") {
			size += perFunction
		}
		shares[moduleOf(strings.Join(fields[3:], " "), names)] += size
	}
	return shares, nil
}

// moduleOf returns the module that a symbol belongs to.
func moduleOf(symbol string, names []string) string {
	symbol = strings.ReplaceAll(symbol, "%2e", ".")
	for _, name := range names {
		if strings.HasPrefix(symbol, name) || strings.Contains(symbol, "*"+name) || strings.Contains(symbol, "."+name) {
			return name
		}
	}
	if strings.HasPrefix(symbol, "main.") {
		return "github.com/luanette/luanette"
	}
	return "the standard library and the runtime"
}
