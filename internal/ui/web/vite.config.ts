import { defineConfig } from 'vite'

// esbuild does JSX by itself; the editor is a chunk of its own, loaded by the
// playground only.
export default defineConfig({
  base: './',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0, // a strict content security policy allows no data: scripts or styles
    modulePreload: { polyfill: false },
    rollupOptions: { output: { manualChunks: (id) => (id.includes('codemirror') || id.includes('@lezer') ? 'editor' : undefined) } },
  },
})
