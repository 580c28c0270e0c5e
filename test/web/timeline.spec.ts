// The timeline of the music tools: drawn, heard, and stored.
import { expect, test } from '@playwright/test'
import { beatAt, excerpt } from '../../internal/ui/web/src/playback'
import { failOnPageErrors, findings, open, shots } from './page'
import { Server } from './server'

const front = new Server('[music]\nenabled = true\n')
failOnPageErrors(() => front)
test.beforeAll(() => front.start())
test.afterAll(() => front.remove())

function music(name: string, args: unknown): Promise<Record<string, unknown>> {
  return front.call('call_tool', { name: `hootenanny.${name}`, arguments: args })
}

/** A WAV file of 16 bits with a sine wave. */
function tone(seconds: number): string {
  const rate = 8000, count = seconds * rate
  const file = Buffer.alloc(44 + 2 * count)
  file.write('RIFF', 0)
  file.writeUInt32LE(36 + 2 * count, 4)
  file.write('WAVEfmt ', 8)
  file.writeUInt32LE(16, 16)
  file.writeUInt16LE(1, 20)
  file.writeUInt16LE(1, 22)
  file.writeUInt32LE(rate, 24)
  file.writeUInt32LE(2 * rate, 28)
  file.writeUInt16LE(2, 32)
  file.writeUInt16LE(16, 34)
  file.write('data', 36)
  file.writeUInt32LE(2 * count, 40)
  for (let i = 0; i < count; i++) file.writeInt16LE(Math.round(16000 * Math.sin((2 * Math.PI * 440 * i) / rate)), 44 + 2 * i)
  return file.toString('base64')
}

test('a timeline is drawn and heard, its position moves, and it is there after a restart', async ({ page }) => {
  const { hash } = await music('cas_store', { content_base64: tone(60), mime_type: 'audio/wav' })
  await music('garden_set_tempo', { project: 'suite', bpm: 120 })
  await music('garden_create_region', { project: 'suite', position: 0, duration: 100, behavior_type: 'play_content', content_id: hash, name: 'a long tone' })
  await music('garden_create_region', { project: 'suite', position: 4, duration: 8, behavior_type: 'latent', name: 'later' })
  await music('garden_add_marker', { project: 'suite', position: 8, marker_type: 'section_change' })

  await open(page, front, 'timeline/suite')
  await expect(page.getByRole('img', { name: 'timeline of 2 regions and 1 markers' })).toBeVisible()
  await expect(page.locator('svg .region')).toHaveCount(2)
  await expect(page.locator('svg .silent')).toHaveCount(1)
  await expect(page.locator('svg .marker')).toHaveCount(1)
  await expect(page.getByRole('cell', { name: 'a long tone' })).toBeVisible()
  // NaN until the page has a position.
  const beat = async () => Number(/beat ([\d.]+)/.exec(await page.getByLabel('position', { exact: true }).innerText())?.[1])
  const cursor = async () => Number(/translate\(([\d.]+)/.exec((await page.locator('svg .cursor').getAttribute('transform')) ?? '')?.[1])
  await expect.poll(beat).toBe(0)

  expect(await (await front.fetch('/api/v1/activity?agent=luanette-hud')).text(), 'what the page reads is not what somebody did').toContain('"sessions":[]')

  await page.getByRole('button', { name: 'Play' }).focus()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('button', { name: 'Pause' })).toBeVisible()
  await expect.poll(beat).toBeGreaterThan(1)
  const first = await cursor()
  await expect.poll(cursor).toBeGreaterThan(first)
  await expect.poll(() => page.getByLabel('level').evaluate((m: HTMLMeterElement) => m.value), 'the tone is heard').toBeGreaterThan(0.1)
  const now = (await music('garden_status', { project: 'suite' })) as { state: string; position_beats: number }
  expect(now.state).toBe('playing')

  await page.screenshot({ path: `${shots}/timeline.png` })
  expect(await findings(page)).toEqual([])

  await page.getByRole('button', { name: 'Pause' }).click()
  await expect(page.getByRole('button', { name: 'Play' })).toBeVisible()
  await expect.poll(() => page.getByLabel('level').evaluate((m: HTMLMeterElement) => m.value), 'it is silent').toBe(0)
  const paused = (await music('garden_status', { project: 'suite' })) as { position_beats: number }
  await page.getByRole('slider', { name: 'position in beats' }).focus()
  await page.keyboard.press('Home')
  await expect.poll(async () => ((await music('garden_status', { project: 'suite' })) as { position_beats: number }).position_beats).toBe(0)
  await music('garden_seek', { project: 'suite', beat: paused.position_beats }) // by another client: the page follows
  await expect.poll(async () => Math.abs((await beat()) - paused.position_beats)).toBeLessThan(0.2)

  await front.stop()
  await front.start()
  await open(page, front, 'timeline')
  await page.getByLabel('Project', { exact: true }).selectOption('suite')
  await expect(page.locator('svg .region')).toHaveCount(2)
  await expect.poll(async () => Math.abs((await beat()) - paused.position_beats)).toBeLessThan(0.2)
  await page.getByRole('button', { name: 'Stop' }).click()
  await expect.poll(beat).toBe(0)
})

test('the part of a clip that sounds', () => {
  const clip = { id: 'a', position: 4, duration: 8, audio: '' }
  expect(excerpt(clip, 0, 120)).toEqual({ delay: 2, offset: 0, length: 4 })
  expect(excerpt(clip, 6, 60)).toEqual({ delay: 0, offset: 2, length: 6 })
  expect(excerpt(clip, 12, 60)).toBeUndefined()
  expect(beatAt({ beat: 3, at: 1000, tempo: 120, playing: true }, 2500)).toBe(6)
  expect(beatAt({ beat: 3, at: 1000, tempo: 120, playing: false }, 2500)).toBe(3)
})
