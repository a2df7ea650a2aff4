/** The page: buttons, curves and digits around a training. */

import { draw, image } from './chart.mjs';
import { Digits } from './digits.mjs';

/** @import { Point } from './chart.mjs' */

// How often the held-out digits are looked at, in steps.
const LOOK = 10;
const MEAN_OF = 20;
const SHOWN = 20;
// A frame has 16 ms: what is left of it is the browser's.
const FRAME_MS = 10;
const SIZE = 8;

const element = (/** @type {string} */ id) =>
  /** @type {HTMLElement} */ (document.getElementById(id));
const buttons = ['run', 'again', 'save'].map(
  (id) => /** @type {HTMLButtonElement} */ (element(id)),
);
const [runButton, againButton, saveButton] = buttons;
const rateInput = /** @type {HTMLInputElement} */ (element('rate'));

let isRunning = false;
/** @type {Point[]} */
let losses = [];
/** @type {Point[]} */
let accuracies = [];
/** @type {number[]} */
let changes = [];
/** @type {number[]} Milliseconds of the last steps. */
let times = [];

/**
 * @param {string} text
 * @param {boolean} [isBad]
 */
function say(text, isBad = false) {
  element('status').textContent = text;
  element('status').classList.toggle('bad', isBad);
}

/** @param {number[]} numbers */
function mean(numbers) {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

/** Return the means of the last batches, at each of them. */
function smoothed() {
  return losses.map(([step], index) => {
    const some = losses.slice(Math.max(0, index + 1 - MEAN_OF), index + 1);
    return /** @type {Point} */ ([step, mean(some.map(([, loss]) => loss))]);
  });
}

function drawAll() {
  const line = smoothed();
  const step = losses.length ? losses[losses.length - 1][0] : 0;
  const loss = line.length ? line[line.length - 1][1] : NaN;
  const accuracy = accuracies.length ? accuracies[accuracies.length - 1][1] : NaN;
  element('step').textContent = String(step);
  element('loss').textContent = Number.isNaN(loss) ? '–' : loss.toPrecision(3);
  element('accuracy').textContent = Number.isNaN(accuracy) ? '–' : percent(accuracy);
  element('time').textContent = times.length ? `${mean(times).toFixed(1)} ms` : '–';
  draw(element('loss-plot'), {
    label: `Loss over ${step} steps, now ${loss.toPrecision(3)}`,
    ...{ each: losses, line, changes },
    ticks: [0.01, 0.1, 1],
    // A loss may be rounded to nothing.
    scale: (value) => Math.log10(Math.max(value, 1e-6)),
    words: String,
  });
  draw(element('accuracy-plot'), {
    label: `Accuracy on held-out digits over ${step} steps, now ${percent(accuracy)}`,
    line: accuracies,
    ticks: [0, 0.25, 0.5, 0.75, 1],
    words: percent,
  });
}

/** @param {number} share */
function percent(share) {
  return `${(100 * share).toFixed(share < 1 && share > 0.9 ? 1 : 0)} %`;
}

/** @param {Digits} digits */
function drawDigits({ heldOut: [{ data }] }) {
  const pixels = /** @type {Float32Array} */ (data);
  // They were scaled to mean 0 and deviation 1.
  const [low, high] = pixels.reduce(
    ([least, most], value) => [Math.min(least, value), Math.max(most, value)],
    [Infinity, -Infinity],
  );
  element('digits').innerHTML = Array.from({ length: SHOWN }, (_, digit) => {
    const own = pixels.subarray(digit * SIZE * SIZE, (digit + 1) * SIZE * SIZE);
    const ink = Float32Array.from(own, (value) => (value - low) / (high - low));
    return `<li>${image(ink, SIZE)}<span></span></li>`;
  }).join('');
}

/**
 * Look at the held-out digits.
 * @param {Digits} digits
 */
async function look(digits) {
  accuracies.push([digits.step, await digits.accuracy()]);
  const truth = digits.heldOut[1].data;
  const classes = await digits.classes(SHOWN);
  [...element('digits').children].forEach((item, digit) => {
    const isRight = classes[digit] === Number(truth[digit]);
    item.className = isRight ? 'right' : 'wrong';
    const span = /** @type {HTMLElement} */ (item.lastElementChild);
    span.textContent = `${classes[digit]} ${isRight ? '✓' : '✗'}`;
    item.setAttribute('aria-label', `a ${truth[digit]}, taken for a ${classes[digit]}`);
  });
}

/**
 * Train one step, and every few look at the digits; tell whether all is finite.
 * @param {Digits} digits
 * @param {number} step how many are done
 */
async function oneStep(digits, step) {
  const begin = performance.now();
  const loss = await digits.train();
  times = [...times, performance.now() - begin].slice(-MEAN_OF);
  if (!Number.isFinite(loss)) return false;
  losses.push([step + 1, loss]);
  return (step + 1) % LOOK > 0 || keepAndLook(digits);
}

/**
 * Keep the state that is shown, to go back to and to download; tell whether it is finite.
 * @param {Digits} digits
 */
async function keepAndLook(digits) {
  if (!digits.keep()) return false;
  await look(digits);
  return true;
}

/** @param {Digits} digits */
async function work(digits) {
  let step = losses.length ? losses[losses.length - 1][0] : 0;
  let isFine = true;
  while (isRunning && isFine) {
    const frame = await new Promise((resolve) => requestAnimationFrame(resolve));
    do {
      isFine = await oneStep(digits, step);
      if (isFine) step++;
    } while (isRunning && isFine && performance.now() - frame < FRAME_MS);
    drawAll();
  }
  isRunning = false;
  if (isFine && (await keepAndLook(digits))) say(`Paused at step ${step}.`);
  else goBack(digits, step);
  drawAll();
  setButtons();
}

/**
 * @param {Digits} digits
 * @param {number} step that diverged
 */
function goBack(digits, step) {
  digits.goBack();
  const kept = digits.step;
  losses = losses.filter(([at]) => at <= kept);
  say(`Diverged at step ${step}: back at step ${kept}. A lower rate may help.`, true);
}

function setButtons() {
  runButton.textContent = isRunning ? 'Pause' : 'Start';
  runButton.disabled = false;
  rateInput.disabled = false;
  // They act on a state that stands still.
  againButton.disabled = saveButton.disabled = isRunning;
}

/** @param {Digits} digits */
function showRate(digits) {
  element('rate-value').textContent = digits.rate.toPrecision(2);
}

/** @param {Digits} digits */
function download(digits) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(digits.file());
  link.download = `digits-step-${digits.step}.safetensors`;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** @param {Digits} digits */
async function clear(digits) {
  [losses, accuracies, changes, times] = [[], [], [], []];
  await look(digits);
  drawAll();
}

async function main() {
  const digits = await Digits.load();
  drawDigits(digits);
  await clear(digits);
  rateInput.value = String(Math.log10(digits.rate));
  showRate(digits);
  runButton.addEventListener('click', () => {
    isRunning = !isRunning;
    // What runs ends by itself, and then says so.
    if (!isRunning) return void (runButton.disabled = true);
    say('Training …');
    setButtons();
    return void work(digits).catch(fail);
  });
  againButton.addEventListener('click', () => {
    digits.restart();
    say('At the beginning.');
    clear(digits).catch(fail);
  });
  saveButton.addEventListener('click', () => download(digits));
  rateInput.addEventListener('input', () => {
    digits.rate = 10 ** Number(rateInput.value);
    const step = losses.length ? losses[losses.length - 1][0] : 0;
    if (changes[changes.length - 1] !== step) changes.push(step);
    showRate(digits);
  });
  window.addEventListener('resize', drawAll);
  say('Ready.');
  setButtons();
}

/** @param {unknown} thrown */
function fail(thrown) {
  isRunning = false;
  for (const button of buttons) button.disabled = true;
  say(`It does not work here: ${thrown instanceof Error ? thrown.message : thrown}`, true);
}

main().catch(fail);
