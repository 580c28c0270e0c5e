// Reads {name: source} on standard input and writes {name: [problem]}. Every
// source is a module of its own, checked as strictly as the compiler can.
const ts = require(process.argv[1]);
const files = JSON.parse(require("fs").readFileSync(0, "utf8"));
const options = { strict: true, noEmit: true, target: ts.ScriptTarget.ES2020, lib: ["lib.es2020.d.ts"], types: [] };
const host = ts.createCompilerHost(options);
const readFile = host.getSourceFile.bind(host);
const own = (name) => Object.hasOwn(files, name.replace(/\.ts$/, ""));
host.getSourceFile = (name, version) =>
  own(name) ? ts.createSourceFile(name, files[name.replace(/\.ts$/, "")] + "\nexport {};\n", version) : readFile(name, version);
const exists = host.fileExists.bind(host);
host.fileExists = (name) => own(name) || exists(name);
const program = ts.createProgram(Object.keys(files).map((name) => name + ".ts"), options, host);
const problems = {};
for (const d of ts.getPreEmitDiagnostics(program)) {
  const name = d.file ? d.file.fileName.replace(/\.ts$/, "") : "";
  const line = d.file ? d.file.getLineAndCharacterOfPosition(d.start).line + 1 : 0;
  (problems[name] ??= []).push(line + ": " + ts.flattenDiagnosticMessageText(d.messageText, "\n"));
}
process.stdout.write(JSON.stringify(problems));
