package lua

// Sandboxed returns the libraries that touch nothing outside the state.
func Sandboxed() []*Library {
	return []*Library{Base, CoroutineLib, TableLib, StringLib, MathLib, UTF8Lib, DebugSafe, Package}
}

// All returns every library, including those that reach files, the
// environment and the internals of the state.
func All() []*Library {
	return []*Library{
		Base, BaseFiles, PackageFiles, CoroutineLib, TableLib, IOLib, OSLib, StringLib, MathLib, UTF8Lib, DebugLib,
	}
}
