import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { build, defineConfig, type Plugin, type Rollup } from 'vite'

// esbuild does JSX by itself. Every page but the overview is a chunk of its own, and so is
// the editor, which the playground loads. The built files are committed, so that `go install` has them: their
// names are constant, and the same sources give the same files.
function chunk(id: string): string | undefined {
  if (id.includes('legacy-modes') && !id.includes('/lua.')) return undefined // with the highlighter, which the editor does not need
  return id.includes('codemirror') || id.includes('@lezer') ? 'codemirror' : undefined
}

// Scripts and styles are written compressed: so the program embeds and serves them.
const compressed: Plugin = {
  name: 'compressed',
  generateBundle: {
    order: 'post', // vite's own plugins still read the names
    handler(_, bundle) {
      for (const [name, file] of Object.entries(bundle)) {
        if (!name.startsWith('assets/')) continue
        const source = gzipSync(file.type === 'chunk' ? file.code : file.source, { level: 9 })
        this.emitFile({ type: 'asset', fileName: `${name}.gz`, source })
        delete bundle[name]
      }
    },
  },
}

// The Apps that clients show in their own windows: each is one file, with its script and style in it.
const apps: Plugin = {
  name: 'apps',
  async generateBundle() {
    const style = readFileSync('src/apps/app.css', 'utf8')
    for (const name of ['approval', 'job']) {
      const made = await build({
        configFile: false, logLevel: 'warn', publicDir: false,
        build: { write: false, target: 'es2022', modulePreload: false, lib: { entry: `src/apps/${name}.ts`, formats: ['iife'], name: 'app' } },
      }) as Rollup.RollupOutput[]
      const script = made[0].output[0].code.replaceAll('</script', '<\\/script')
      const source = `<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Luanette</title>\n<style>\n${style}</style>\n<body></body>\n<script>\n${script}</script>\n</html>\n`
      this.emitFile({ type: 'asset', fileName: `apps/${name}.html`, source })
    }
  },
}

export default defineConfig({
  base: './',
  plugins: [compressed, apps],
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // a strict content security policy allows no data: scripts or styles
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: {
        manualChunks: chunk,
        experimentalMinChunkSize: 15000, // what several pages share is not a file for each part
        entryFileNames: 'assets/[name].js',
        chunkFileNames: 'assets/[name].js',
        assetFileNames: 'assets/[name][extname]',
      },
    },
  },
})
