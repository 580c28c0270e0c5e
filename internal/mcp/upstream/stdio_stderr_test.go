package upstream

import (
	"fmt"
	"testing"
)

func TestStackFramesDoNotHideTheReason(t *testing.T) {
	t.Parallel()
	said := &stderrLines{}
	said.add("Error: getaddrinfo ENOTFOUND api.example.org")
	for range 20 {
		said.add("at async main (file:///srv/node_modules/server/dist/stdio.js:178:5)")
		said.add("at GetAddrInfoReqWrap.callbackTrampoline (node:internal/async_hooks:130:17)")
	}
	said.add("Node.js v22.1.0")
	if text := said.text(); text != "Error: getaddrinfo ENOTFOUND api.example.org / Node.js v22.1.0" {
		t.Errorf("text = %q", text)
	}
}

func TestLineThatSaysWhyIsShown(t *testing.T) {
	t.Parallel()
	said := &stderrLines{}
	for n := range 30 {
		if said.add(clean(fmt.Sprint("\x1b[33mstep ", n, "\x1b[39m"))); n == 15 {
			said.add("getaddrinfo ENOTFOUND mcp.example.org")
		}
	}
	if want := "step 0 / step 1 / step 2 / step 3 / step 4 / … getaddrinfo ENOTFOUND mcp.example.org … / step 25 / step 26 / step 27 / step 28 / step 29"; said.text() != want {
		t.Errorf("text = %q", said.text())
	}
}

func TestFoldersAroundAPackageAreNoLoss(t *testing.T) {
	t.Parallel()
	i := &installed{folder: "/data/packages/npm/server/1.0.0-abc"}
	for folder, want := range map[string]bool{"/data": true, "/data/packages/npm": true, "/data/packages/np": false, "/data/luanette.db": false, "/srv": false} {
		if is := i.isBelow(folder); is != want {
			t.Errorf("%s: %v", folder, is)
		}
	}
	if none := (*installed)(nil); none.isBelow("/data") {
		t.Error("a program without a package is below a folder")
	}
}
