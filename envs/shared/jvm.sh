#!/usr/bin/env bash
# jvm.sh FOLDER RUNNER CLASS GOAL: a runner on the Java virtual machine, compiled by Maven's GOAL.
# FOLDER/bin/transect-runner-RUNNER starts CLASS of FOLDER/lib/RUNNER on the library of the environment
# `onnxruntime`. Needs a JDK >= 17, Maven, and a Maven repository to take the jars from.
set -euo pipefail

folder=$1 runner=$2 class=$3 goal=$4
source=$(cd "$(dirname "$0")/../../src/runners/$runner" && pwd)
case $(uname -m) in
  x86_64) platform=linux-x64 ;;
  aarch64) platform=linux-aarch64 ;;
  *) echo "build.sh: error: ONNX Runtime's jar has no binding for $(uname -m)" >&2; exit 1 ;;
esac
for tool in java javac jar mvn; do
  command -v "$tool" > /dev/null || {
    echo "build.sh: error: $tool is not on PATH: install a JDK >= 17 and Maven" >&2; exit 1
  }
done

work=$folder/build lib=$folder/lib/$runner
mkdir -p "$lib"
mvn --batch-mode --quiet --strict-checksums --threads 1 --file "$source/pom.xml" \
  "-Dstyle.color=never" "-Dbuild.folder=$work" "$goal" jar:jar \
  dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$lib"

# These jars and no others, bit by bit.
if ! (cd "$lib" && sha256sum -- *.jar) | diff "$source/checksums.txt" - >&2; then
  echo "build.sh: error: the jars above are not those of $source/checksums.txt" >&2
  exit 1
fi

# The jar of ONNX Runtime carries a build for each platform. All languages run the same one, the
# wheel's, so only the classes and the binding of this platform are kept.
mkdir "$work/onnxruntime"
(cd "$work/onnxruntime" && jar --extract --file "$(echo "$lib"/onnxruntime-*.jar)")
mv "$work/onnxruntime/ai/onnxruntime/native/$platform/libonnxruntime4j_jni.so" "$lib/"
rm -r "$work/onnxruntime/ai/onnxruntime/native" "$lib"/onnxruntime-*.jar
jar --create --file "$lib/onnxruntime.jar" -C "$work/onnxruntime" .
mv "$work/transect-runner.jar" "$lib/"
rm -r "$work"

bash "$(dirname "$0")/../shared/onnxruntime-library.sh" "$folder"

# One thread collects, and nothing runs beside the program but the just-in-time compiler. The size
# of the young generation is set: its default follows from the memory of the machine.
cat > "$folder/bin/transect-runner-$runner" << END
#!/bin/sh
lib=\${0%/*}/../lib/$runner
exec java -XX:+UseSerialGC -Xms128m -Xmn64m -XX:-UsePerfData \\
  -XX:+ErrorFileToStderr -XX:-CreateCoredumpOnCrash --enable-native-access=ALL-UNNAMED \\
  "-Dtransect.binding=\$(cd "\$lib" && pwd)/libonnxruntime4j_jni.so" -cp "\$lib/*" \\
  $class "\$@"
END
chmod +x "$folder/bin/transect-runner-$runner"
