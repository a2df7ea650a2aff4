package transect.runner;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;

/** JSON as the standard has it; gson alone would also take what is none. */
final class Json {
  private static final Gson WRITER =
      new GsonBuilder().disableHtmlEscaping().serializeNulls().create();
  private static final int SHOWN = 200;

  private Json() {}

  /** Read one value. Throws BadInput naming the file. */
  static JsonElement read(Path path) {
    try {
      return parse(Files.readString(path));
    } catch (IOException | JsonParseException | StackOverflowError error) {
      throw new BadInput(path + ": expected a JSON file: " + error, error);
    }
  }

  /** Read one value. Throws JsonParseException for what is none. */
  static JsonElement parse(String text) {
    try (JsonReader reader = new JsonReader(new StringReader(text))) {
      reader.setStrictness(Strictness.STRICT);
      JsonElement value = JsonParser.parseReader(reader);
      if (reader.peek() != JsonToken.END_DOCUMENT) {
        throw new JsonParseException("more than one value");
      }
      return value;
    } catch (IOException error) {
      throw new JsonParseException(error);
    }
  }

  /** Read an object that has no key twice. Throws JsonParseException for what is none. */
  static JsonObject parseUnique(String text) {
    // The parser itself takes the last one, and says nothing.
    JsonObject found = new JsonObject();
    if (!(parse(text) instanceof JsonObject)) {
      throw new JsonParseException("no object");
    }
    try (JsonReader reader = new JsonReader(new StringReader(text))) {
      reader.setStrictness(Strictness.STRICT);
      reader.beginObject();
      while (reader.hasNext()) {
        String name = reader.nextName();
        if (found.has(name)) {
          throw new JsonParseException("'" + name + "' is there twice");
        }
        found.add(name, JsonParser.parseReader(reader));
      }
      return found;
    } catch (IOException error) {
      throw new JsonParseException(error);
    }
  }

  static String text(Object value) {
    return WRITER.toJson(value);
  }

  static boolean isText(JsonElement value) {
    return value instanceof JsonPrimitive primitive && primitive.isString();
  }

  /** Tell whether it is a number >= 0 without a fraction that Java's `long` holds. */
  static boolean isWhole(JsonElement value) {
    return value instanceof JsonPrimitive primitive
        && primitive.isNumber()
        && primitive.getAsString().matches("[0-9]{1,18}");
  }

  /** Tell whether it is a number that float64 holds. */
  static boolean isFinite(JsonElement value) {
    return value instanceof JsonPrimitive primitive
        && primitive.isNumber()
        && Double.isFinite(primitive.getAsDouble());
  }

  /** Tell whether it is a list of numbers >= 0 without a fraction. */
  static boolean areSizes(JsonElement value) {
    return value instanceof JsonArray list && list.asList().stream().allMatch(Json::isWhole);
  }

  /** Return a list of sizes. */
  static long[] sizes(JsonElement value) {
    return value.getAsJsonArray().asList().stream().mapToLong(JsonElement::getAsLong).toArray();
  }

  /** Show a value in a message, which stays one line. */
  static String shown(JsonElement value) {
    String text = String.valueOf(value);
    return text.length() <= SHOWN ? text : text.substring(0, SHOWN) + "…";
  }
}
