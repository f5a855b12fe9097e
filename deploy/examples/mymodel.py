from river import compose, linear_model, preprocessing


def fraud_model(l2=0.0):
    numbers = compose.SelectType(float) | preprocessing.StandardScaler()
    categories = compose.SelectType(str) | preprocessing.OneHotEncoder()
    return (numbers + categories) | linear_model.LogisticRegression(l2=l2)


class Cells:  # counts each class in cells such as ages 20 to 39
    def __init__(self, widths):
        self.widths, self.counts = widths, {}

    def learn_one(self, x, y):
        counts = self.counts.setdefault(self.cell(x), {})
        counts[y] = counts.get(y, 0) + 1

    def predict_proba_one(self, x):  # a regressor has predict_one, which returns a number
        counts = self.counts.get(self.cell(x), {})
        return {y: count / sum(counts.values()) for y, count in counts.items()}

    def predict_proba_many(self, rows):  # optional: called instead, once for all inputs
        return [self.predict_proba_one(x) for x in rows]

    def cell(self, x):
        return tuple(x[feature] // width for feature, width in self.widths.items())


def costly_misses(y, output):  # the label, and class → probability (regression: a number)
    p = output.get(True, 0.0)
    return 10.0 * (1.0 - p) if y else p
