import { defineConfig } from 'vite'

// esbuild does JSX by itself. Every page but the overview is a chunk of its own, and so is
// the editor, which the playground loads. The built files are committed, so that `go install` has them: their
// names are constant, and the same sources give the same bytes.
function chunk(id: string): string | undefined {
  if (id.includes('legacy-modes') && !id.includes('/lua.')) return undefined // with the highlighter, which the editor does not need
  return id.includes('codemirror') || id.includes('@lezer') ? 'codemirror' : undefined
}

export default defineConfig({
  base: './',
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
