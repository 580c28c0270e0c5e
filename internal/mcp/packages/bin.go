package packages

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// findBin finds the program to run as npx does, below the folder, and the options of node that
// it names; they are null if it is no program of node.
func (a *attempt) findBin() (bin string, options []string, err error) {
	name := NameOf(a.request.Specs[0])
	program := a.request.Bin
	var bins map[string]string
	if bins, err = readBins(filepath.Join(a.folder, "node_modules", name), name); err != nil {
		return "", nil, err
	}
	if program == "" {
		if program = chooseBin(bins, name); program == "" {
			return "", nil, fault.New(fault.Unavailable, "%s has the programs %s, and none is named like the package", name, strings.Join(slices.Sorted(maps.Keys(bins)), ", ")).
				WithHint("name one: npx -y -p %s PROGRAM", a.request.Specs[0])
		}
	}
	bin = filepath.Join("node_modules", ".bin", program)
	if runtime.GOOS == "windows" { // there it is a script of cmd
		bin = filepath.Join("node_modules", name, bins[program])
	}
	file, err := os.Open(filepath.Join(a.folder, bin))
	if err != nil {
		return "", nil, fault.New(fault.Unavailable, "%s has no program %s", a.request.Specs[0], program).WithHint("look at the package's description: npm view %s", name)
	}
	defer file.Close()
	line, _ := bufio.NewReader(file).ReadString('\n') // a file without lines has none
	return bin, nodeOptions(line, bins[program]), nil
}

// readBins are the programs of a package.
func readBins(folder, name string) (map[string]string, error) {
	var manifest struct {
		Bin json.RawMessage `json:"bin"`
	}
	text, err := os.ReadFile(filepath.Join(folder, "package.json"))
	if err == nil {
		err = json.Unmarshal(text, &manifest)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "read the description of %s", name)
	}
	bins := map[string]string{}
	var one string
	if json.Unmarshal(manifest.Bin, &one) == nil && one != "" {
		bins[withoutScope(name)] = one
	} else {
		_ = json.Unmarshal(manifest.Bin, &bins) // without programs there are none
	}
	if len(bins) == 0 {
		return nil, fault.New(fault.Unavailable, "%s has no program to run", name).WithHint("it is a library; look at its description: npm view %s", name)
	}
	return bins, nil
}

// chooseBin is the program that npx runs when none is named: the only one, or that which is
// named like the package.
func chooseBin(bins map[string]string, name string) string {
	files := slices.Compact(slices.Sorted(maps.Values(bins)))
	if len(files) == 1 {
		return slices.Sorted(maps.Keys(bins))[0]
	}
	if _, has := bins[withoutScope(name)]; has {
		return withoutScope(name)
	}
	return ""
}

func withoutScope(name string) string { return name[strings.LastIndex(name, "/")+1:] }

// nodeOptions are the options in the first line of a program of node, as
// "#!/usr/bin/env -S node --no-warnings"; null if it is for another interpreter.
func nodeOptions(line, file string) []string {
	if !strings.HasPrefix(line, "#!") {
		if slices.Contains([]string{".js", ".mjs", ".cjs"}, filepath.Ext(file)) {
			return []string{}
		}
		return nil
	}
	words := strings.Fields(line[2:])
	for i, word := range words {
		if base := filepath.Base(word); base == "node" || base == "node.exe" {
			return append([]string{}, words[i+1:]...)
		}
	}
	return nil
}
