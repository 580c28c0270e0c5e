//go:build !linux

package upstream

// treeWork is not known here.
func treeWork(int) work { return work{} }
