package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const bsd = "Redistribution and use in source and binary forms, with or without modification, are permitted"

func TestClassify(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Permission is hereby granted, free of\n charge, to any person … The above copyright notice and this permission notice shall":           "MIT",
		"Permission is hereby granted, free of charge, to any person … to whom the Software is furnished to do so.\n\nTHE SOFTWARE IS PROVIDED": "MIT-0",
		"Permission is hereby granted, free of charge, to any person … is furnished to do so, for a fee. THE SOFTWARE IS PROVIDED":              "",
		bsd: "BSD-2-Clause",
		bsd + " … Neither the name … to endorse or promote products": "BSD-3-Clause",
		"Apache License\n Version 2.0, January 2004":                 "Apache-2.0",
		"Mozilla Public License Version 2.0 … means either the GNU General Public License, Version 2.0, the GNU Lesser General Public License,\n" +
			"Version 2.1, the GNU Affero General Public License, Version 3.0, or any later versions of those licenses.": "MPL-2.0",
		"GNU GENERAL PUBLIC LICENSE Version 3":        "GPL",
		"GNU AFFERO GENERAL PUBLIC LICENSE Version 3": "AGPL",
		"GNU LESSER GENERAL PUBLIC LICENSE":           "LGPL",
		"Business Source License 1.1":                 "BUSL",
		"all rights reserved":                         "",
	} {
		if got := strings.Join(classify(text), " AND "); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestPermitted(t *testing.T) {
	t.Parallel()
	for licence, want := range map[string]bool{
		"MIT": true, "MIT AND Apache-2.0": true, "(GPL-3.0 OR MIT)": true,
		"GPL": false, "MIT AND GPL": false, "unknown": false, "": false, "AGPL": false,
	} {
		if permitted(licence) != want {
			t.Errorf("%q is permitted: %v", licence, !want)
		}
	}
}

func TestAModuleWithoutALicenceIsRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if got, err := licenceOf(folder); err != nil || got != "unknown" {
		t.Errorf("%s %v", got, err)
	}
	for name, text := range map[string]string{"LICENSE": bsd, "COPYING.GPL": "GNU GENERAL PUBLIC LICENSE"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := licenceOf(folder)
	if err != nil || permitted(got) || refused([]dependency{{"Go", "x", "v1", got}}) == nil {
		t.Errorf("%s %v", got, err)
	}
}

// TestThePage checks that docs/licences.md is up to date: run make licences.
func TestThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/licences.md")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		columns := strings.Split(line, " | ")
		if len(columns) == 4 && columns[0] == "| Go" && !strings.Contains(string(module), columns[1]+" "+columns[2]) {
			t.Errorf("%s %s is not what go.mod has; run `make licences`", columns[1], columns[2])
		}
	}
}
