import { defineConfig } from '@playwright/test'

// Files run side by side: each has servers of its own. What measures runs alone, after all others.
const measuring = 'load.spec.ts'

export default defineConfig({
  testDir: '.',
  timeout: 120_000, // a test takes seconds; beside other work a few times as long
  expect: { timeout: 30_000 },
  workers: 3, // for two processors: tests wait a part of their time
  forbidOnly: true,
  reporter: [['list']],
  outputDir: '../../.cache/web/results',
  projects: [
    { name: 'pages', testIgnore: measuring },
    { name: 'measuring', testMatch: measuring, dependencies: ['pages'] },
  ],
  use: {
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', // Debian's
      args: ['--no-sandbox'],
    },
    contextOptions: { reducedMotion: 'reduce' },
    screenshot: 'only-on-failure',
    viewport: { width: 1200, height: 800 },
  },
})
