import { defineConfig } from '@playwright/test'

// Debian's Chromium, one page at a time.
export default defineConfig({
  testDir: '.',
  testIgnore: 'lighthouse/**', // has its own packages: make lighthouse
  timeout: 180_000, // far above the usual time, for slow machines
  expect: { timeout: 60_000 },
  workers: 1,
  forbidOnly: true,
  reporter: [['list']],
  outputDir: '../../.cache/web/results',
  use: {
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: ['--no-sandbox'],
    },
    screenshot: 'only-on-failure',
    viewport: { width: 1200, height: 800 },
  },
})
