export {};

declare global {
  /** V8's, with `--expose-gc`. */
  var gc: (() => void) | undefined;

  /** Of Chromium alone, and not in TypeScript's library. */
  interface WorkerNavigator {
    readonly userAgentData?: UserAgentData;
  }
  interface Navigator {
    readonly userAgentData?: UserAgentData;
  }
  interface UserAgentData {
    getHighEntropyValues(hints: ['fullVersionList']): Promise<{
      fullVersionList: { brand: string; version: string }[];
    }>;
  }
}
